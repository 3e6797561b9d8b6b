//! What this processor can do.
