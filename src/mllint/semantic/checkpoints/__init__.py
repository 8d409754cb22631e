"""What is saved to files, what is read back, and whether it fits what it is loaded into.

============  =======================================================================================================
``contents``  what a dict on its way to or from a file holds
``paths``     the paths of files as far as they are known, and when two of them are the same
``tracing``   where the dict that an expression stands for comes from, and what was done to its keys on the way
``saves``     what a file and the files around it save
``loads``     calls of ``load_state_dict`` and its kind: what they are given, what they want, and what is wrong
============  =======================================================================================================
"""
