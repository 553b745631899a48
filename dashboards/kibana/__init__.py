"""The dashboards as saved objects of Kibana 8.19, and their installation."""
