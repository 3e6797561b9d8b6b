//! Convolutions over images.
