//! This room is furnished once the engine stands: see ARCHITECTURE.md.
