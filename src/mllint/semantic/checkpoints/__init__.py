"""What is saved to files, what is read back, and whether it fits what it is loaded into.

=================  ==================================================================================================
``contents``       what a dict on its way to or from a file holds, and what loops and comprehensions do to its keys
``paths``          the paths of files as far as they are known, and when two of them are the same
``routes``         expressions in some file, and through which calls their function was entered
``path_tracing``   the path that an expression stands for
``tracing``        where the dict that an expression stands for comes from, and what was done to it on the way
``saves``          what a file and the files around it save
``counterparts``   which files were saved for a load
``loads``          calls that load a state dict: what they are given, and which keys they want
``handling``       what the code around a load does with the dict
``bare_as_told``   loads of a bare module from a file that other code always loads into a wrapper
``told_elsewhere`` what the project saves of the same option or class, where the path of a file says little
``misread``        what is surely wrong with a call that reads a file
``never_written``  entries that are read of a file and not saved there, or under another key than a test asks for
``never_reached``  lines that no known call reaches, by what the calls leave to a default
``shared_state``   states that are loaded into two things, or saved under the keys of two
``settings``       settings that are given to a load in the place of a state
``rewritten``      files that are read before they are written, and saves of what was read from another file
``problems``       what is surely wrong with a load
``refused``        files that hold objects of Python, which PyTorch refuses since 2.6, and those that are meant to
``saved_objects``  calls that save an object to the file that another call reads
``own_files``      files that only the running program can have written
``mistaken``       what is read from files and taken for something else
``wording``        the same in the words of a message
``deliberate``     loads that skip what does not match, on purpose
``unchecked``      loads that skip what does not match, unseen, or whose report is taken for the model
``wrapped``        state dicts of wrapped modules that are saved
``wrappings``      in what a module may be wrapped, on each way to it
``wrapped_later``  loads into a module that is put into a wrapper afterwards
``one_sided``      loads of which only one side has the prefix of a wrapper in its keys
``taken_alike``    state dicts of a wrapped module and of the module itself that two branches take alike, or load
``taken_out``      loads into a wrapper of what is saved of the module inside
``saving``         what is written to files, by whichever function
``resuming``       checkpoints from which a training resumes without the state of its optimizer
``left_in_file``   loads from which training goes on, and which leave the state of the optimizer in the file
``aliases``        what keeps the very tensors of a state dict, and what writes into them
``better``         what is kept where something does better than what was kept before
``kept_models``    modules that are themselves kept as the best
``snapshots``      state dicts that are kept while what they belong to goes on changing
``thrown_away``    what is written to a state dict that nobody has
``histories``      weights that are put into a list again and again while they go on changing
=================  ==================================================================================================
"""
