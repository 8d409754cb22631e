"""The version of mllint, for the modules that are below its front."""

VERSION = "0.1.0"
