//! Loops over elements: maps, zips, broadcasts.
