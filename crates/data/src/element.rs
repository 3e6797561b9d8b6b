//! Elements of a dataset and what is known about all of them.

use smallvec::SmallVec;
use status::{Result, invalid};
use std::fmt::Display;
use tensor::{DType, PartialShape, Tensor};

/// The components of one element.
pub type Element = SmallVec<[Tensor; 2]>;

/// Types and shapes of the components of every element.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// The type of each component.
    pub types: Vec<DType>,
    /// The shape of each component.
    pub shapes: Vec<PartialShape>,
}

impl Spec {
    /// The same with a truth value as one more component.
    pub(crate) fn with_truth(&self) -> Spec {
        let mut spec = self.clone();
        spec.types.push(DType::BOOL);
        spec.shapes.push(PartialShape::of_rank(0));
        spec
    }

    /// An error if the types of another description differ, or its shapes cannot be the same.
    pub fn check(&self, other: &Spec) -> Result<()> {
        self.check_types(&other.types)?;
        self.check_count("shapes", self.shapes.len(), other.shapes.len())?;
        for (index, (expected, found)) in self.shapes.iter().zip(&other.shapes).enumerate() {
            if !expected.compatible(found) {
                return Err(incompatible(index, expected, found));
            }
        }
        Ok(())
    }

    /// An error if the types or shapes of an element differ.
    pub fn check_element(&self, element: &[Tensor]) -> Result<()> {
        self.check_count("types", self.types.len(), element.len())?;
        for (index, (&expected, found)) in self.types.iter().zip(element).enumerate() {
            check_type(index, expected, found.dtype())?;
        }
        for (index, (expected, found)) in self.shapes.iter().zip(element).enumerate() {
            if !expected.accepts(found.shape()) {
                return Err(incompatible(index, expected, found.shape()));
            }
        }
        Ok(())
    }

    /// As `check_element`, for an element that is returned as an optional.
    pub fn check_optional(&self, element: &[Tensor]) -> Result<()> {
        let wrong = |what: &str, index: usize, expected: &dyn Display, found: &dyn Display| {
            invalid!(
                "The given optional does not match the expected {what} for component {index}. Expected: {expected}. \
                 Actual: {found}."
            )
        };
        self.check_count("types", self.types.len(), element.len())?;
        for (index, (found, (dtype, shape))) in element.iter().zip(self.types.iter().zip(&self.shapes)).enumerate() {
            if found.dtype() != *dtype {
                return Err(wrong("type", index, dtype, &found.dtype()));
            }
            if !shape.accepts(found.shape()) {
                return Err(wrong("shape", index, shape, found.shape()));
            }
        }
        Ok(())
    }

    /// An error if the types differ.
    pub fn check_types(&self, found: &[DType]) -> Result<()> {
        self.check_count("types", self.types.len(), found.len())?;
        let mut pairs = self.types.iter().zip(found).enumerate();
        pairs.try_for_each(|(index, (&expected, &found))| check_type(index, expected, found))
    }

    fn check_count(&self, what: &str, expected: usize, found: usize) -> Result<()> {
        if expected == found {
            return Ok(());
        }
        Err(invalid!("Number of components does not match: expected {expected} {what} but got {found}."))
    }
}

fn check_type(index: usize, expected: DType, found: DType) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(invalid!("Data type mismatch at component {index}: expected {expected} but got {found}."))
}

fn incompatible(index: usize, expected: &PartialShape, found: &dyn Display) -> status::Error {
    invalid!("Incompatible shapes at component {index}: expected {expected} but got {found}.")
}
