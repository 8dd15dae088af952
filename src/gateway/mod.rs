//! The gateway: its protocol, how its answers are judged, and the packages it hands out.
