"""The dashboards as JSON models of Grafana with an Elasticsearch data source, and their installation."""
