"""Certificates of playbooks: runs on scripted or recorded answers, struck at every event and failed
in every way, and what must hold of them all the same. No model is asked.
"""
