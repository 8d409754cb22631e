"""What is saved to files, what is read back, and whether it fits what it is loaded into.

=================  ==================================================================================================
``contents``       what a dict on its way to or from a file holds
``places``         expressions in some file, and how messages name where they stand
``paths``          the paths of files as far as they are known, and when two of them are the same
``routes``         through which calls a function was entered, and what its parameters stand for then
``renames``        what loops and comprehensions do to the keys of a dict
``path_tracing``   the path that an expression stands for
``tracing``        where the dict that an expression stands for comes from, and what was done to it on the way
``usual_folders``  files that are written to another folder than the one that is read, where nobody tells otherwise
``read_from_file`` whether what is loaded was read from a file, also where its value is lost
``saves``          what a file and the files around it save
``counterparts``   which files were saved for a load
``loads``          calls that load a state dict: what they are given, and which keys they want
``handling``       what the code around a load does with the dict
``of_class``       what the code saves of a class of networks, where no more than a name tells which file is read
``told_elsewhere`` what the project saves, where another function reads the same option in that form
``two_forms``      files of which a function loads the whole, and an entry as well
``misread``        what is surely wrong with a call that reads a file
``misnamed``       loads from a path to which nothing is written, beside one that nearly is it
``never_written``  entries that are read of a file and not saved there
``entry_used``     entries of a file that are taken for the thing whose state they are
``never_given``    lines that are reached only with what no call gives
``never_reached``  lines that no known call reaches, since a test is decided by a default
``read_again``     entries of a file that are taken for the path of another
``saved_twice``    states that are saved under the key of another thing, too
``shared_state``   states that go into an optimizer, and the very same into a module
``settings``       settings that are given to a load in the place of a state
``asked``          entries that a test asks for under one key, and a load reads under another
``converted``      saves of what was read from another file
``rewritten``      files that are read before they are written
``unpacked``       dicts in files that are taken for a pair
``given_back``     calls that copy the weights into what was read, instead of loading it
``reports``        what loading gives back, taken for the model
``problems``       what is surely wrong with a load
``refused``        files that hold objects of Python, which PyTorch refuses since 2.6
``mistaken``       state dicts in files that are taken for the module whose state they are
``wording``        the same in the words of a message
``deliberate``     loads that skip what does not match, on purpose
``starts``         loads of which a training starts: what fits of another network
``unchecked``      loads that skip what does not match, unseen
``wrapped``        state dicts of wrapped modules that are saved
``wrappings``      in what a module may be wrapped, on each way to it
``wrapped_later``  loads into a module that is put into a wrapper afterwards
``journeys``       through which hands a module has come to where its state is saved
``one_sided``      loads from one module into another of which only one is in a wrapper
``keys_read``      loads of a dict of which the keys that are read tell whether a wrapper's prefix is in them
``stripped``       loads of one file in two branches, of which only one takes a prefix off the keys
``taken_alike``    state dicts that two branches take alike, though the test between them asks for a wrapper
``made_alike``     loads of one file into the same module with and without a wrapper, in two branches
``taken_out``      loads into a wrapper of what is saved of the module inside
``meant_whole``    whole things that are saved for readers who allow any class
``saving``         what is written to files, by whichever function
``resuming``       checkpoints from which a training resumes without the state of its optimizer
``left_in_file``   loads from which training goes on, and which leave the state of the optimizer in the file
``overwriting``    calls that write into the weights of a module by hand
``aliases``        what keeps the very tensors of a state dict
``better``         what is kept where something does better than what was kept before
``kept_models``    modules that are themselves kept as the best
``snapshots``      state dicts that are kept while what they belong to goes on changing
=================  ==================================================================================================
"""
