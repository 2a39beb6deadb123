from hypothesis import settings

# The slowest example on a busy machine says nothing about the code.
settings.register_profile("no-deadline", deadline=None)
settings.load_profile("no-deadline")
