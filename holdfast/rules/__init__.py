"""What happens next: pure rules over a run's state. They read no clock, file or setting, and know
neither what is shown nor who carries out their moves.
"""
