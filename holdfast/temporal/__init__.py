"""How every process of a deployment speaks to Temporal."""
