//! Placeholder header, replaced in the next commits.
