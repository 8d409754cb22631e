"""From outcomes to text: one module a form, values in, text out. Nothing here prints or reads
files.
"""
