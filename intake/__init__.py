"""From what was asked, in whatever way, to a started run: goals (what was asked, checked), plans
(ready and edited ones), launch (starting a run once).
"""
