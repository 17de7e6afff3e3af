"""Files of Iometer: its configurations, as plans and back, and its tables of results."""
