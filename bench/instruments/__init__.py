"""What measurements share: a deployment of their own, clients, histories, tables."""
