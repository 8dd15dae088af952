//! The cluster: what its objects look like, and the one edge through which it is read and changed.
