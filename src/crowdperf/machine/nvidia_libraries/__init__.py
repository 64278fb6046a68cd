"""NVIDIA's cuDNN and TensorRT: which are on a machine, which fits, what is in the vendor's archive, and does it load.

kinds       what tells the two libraries: file names, headers, versions
request     what the user asks for, out of CM's env
discovery   all installed ones
selection   the one to take, and why not the others
archive     the vendor's tar file: what its name says, and whether what was unpacked is whole
load        loads a library in another process (load_check) and asks its version
steps       what the hooks of both recipes do alike, with env keys and texts
"""
