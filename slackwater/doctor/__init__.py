"""Doctor of a cluster: finds problems, before and after `ray up`.

Before: `slackwater/doctor/launcher_file.py` reads the launcher file and visits its hosts over ssh
(`slackwater/doctor/visit.py`). After: `slackwater/doctor/address.py` asks the nodes through Ray.
Both run `actors/nodes/host_facts.py` there for the facts, which `slackwater/doctor/findings.py`
judges. The command is `slackwater/cli/doctor_command.py`.
"""
