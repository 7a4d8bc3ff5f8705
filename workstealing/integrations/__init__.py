"""Where hosts enlist: one module per framework, server or cache that they run on."""
