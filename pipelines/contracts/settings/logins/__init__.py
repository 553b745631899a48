"""Logins: from the settings of a server to the options with which its clients are let in. No message shows a secret."""
