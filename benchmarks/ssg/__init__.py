"""Slack-ScaleGate with fixed slacks: [ssg] Fig. 2-4 and 8-10."""
