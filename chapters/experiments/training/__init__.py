"""How networks are trained, and whether it decides what an audit finds; of no paper."""
