"""Find faults of a cluster, present or to come, and report them in plain words.

Before `ray up`: `slackwater/doctor/launcher_file.py` reads the file and visits its hosts over ssh
(`slackwater/doctor/visit.py`). After it: `slackwater/doctor/address.py` asks the nodes through
Ray. Both send `actors/nodes/host_facts.py` for the facts, which `slackwater/doctor/findings.py`
judges. The command is `slackwater/cli/doctor_command.py`.
"""
