//! How a ring divides a tensor: into sections of elements, and over several rings that visit the devices of a task in
//! different orders. TensorFlow's rules, as every member computes them for itself.

use op::Subdivisions;
use status::{Result, internal};
use std::ops::Range;

/// The boundary of sections in memory, as TensorFlow is built.
const ALIGNMENT: usize = 64;
/// Sections are divided until they are no larger than this, if the op allows it.
const LARGEST: usize = 4 << 20;
/// The number of rings for each device, unless the op says another one.
const RINGS: usize = 2;

/// The elements of each section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sections {
    elements: usize,
    each: usize,
}

impl Sections {
    /// Sections of a tensor of elements of this size. Each begins on a boundary, so the last ones may be shorter or empty.
    pub fn aligned(elements: usize, size: usize, count: usize) -> Sections {
        let bytes = elements.div_ceil(count) * size;
        // One more than needed if the section ends on a boundary.
        let each = (bytes / ALIGNMENT + 1) * ALIGNMENT / size;
        Sections { elements, each }
    }

    /// A section.
    pub fn range(&self, section: usize) -> Range<usize> {
        let start = (section * self.each).min(self.elements);
        start..(start + self.each).min(self.elements)
    }
}

/// The orders in which rings visit the members, by rank.
pub(super) type Rings = Vec<Vec<usize>>;

/// The rings of a group with these numbers of devices on its tasks, for a tensor of this size.
pub(super) fn rings(subdivisions: &Subdivisions, devices_by_task: &[usize], bytes: usize) -> Result<Rings> {
    let offsets = match subdivisions {
        Subdivisions::Offsets(offsets) => offsets.clone(),
        Subdivisions::AtMost(most) => offsets(*most, devices_by_task, bytes)?,
    };
    Ok(offsets.into_iter().map(|offset| ring(offset, devices_by_task)).collect())
}

fn offsets(most: i32, devices_by_task: &[usize], bytes: usize) -> Result<Vec<i32>> {
    let Ok(most) = usize::try_from(most) else { return Ok(vec![0]) };
    if bytes == 0 {
        return Err(internal!("shape in CollectiveParams should be non-empty"));
    }
    let members: usize = devices_by_task.iter().sum();
    let devices = (members / devices_by_task.len()).max(1);
    let most = devices.saturating_mul(if most > 0 { most } else { RINGS });
    let count = (1..=most).find(|count| bytes / (members * count) <= LARGEST).unwrap_or(most);
    let stride = (devices / count).max(1);
    let offset = |ring: usize| if ring % 2 == 1 { -((stride * ring) as i32) } else { (stride * ring) as i32 };
    Ok((0..count).map(offset).collect())
}

/// The devices of each task, from an offset on; in reverse order if it is negative.
fn ring(offset: i32, devices_by_task: &[usize]) -> Vec<usize> {
    let (reverse, offset) = (offset < 0, offset.unsigned_abs() as usize);
    let mut ring = Vec::new();
    let mut first = 0;
    for &devices in devices_by_task {
        for device in 0..devices {
            let place = (device + offset) % devices;
            ring.push(first + if reverse { devices - (place + 1) } else { place });
        }
        first += devices;
    }
    ring
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_begin_on_boundaries_and_take_one_more_than_needed() {
        let sections = Sections::aligned(34, 4, 2);
        assert_eq!((sections.range(0), sections.range(1)), (0..32, 32..34));
        let full = Sections::aligned(32, 4, 2);
        assert_eq!((full.range(0), full.range(1)), (0..32, 32..32));
        let wide = Sections::aligned(1000, 8, 3);
        assert_eq!((wide.range(0), wide.range(1), wide.range(2)), (0..336, 336..672, 672..1000));
    }

    #[test]
    fn rings_rotate_the_devices_of_each_task() {
        let rings = |offsets: &[i32]| rings(&Subdivisions::Offsets(offsets.to_vec()), &[3, 2], 4).expect("rings");
        assert_eq!(rings(&[0]), [[0, 1, 2, 3, 4]]);
        assert_eq!(rings(&[1, -1]), [[1, 2, 0, 4, 3], [1, 0, 2, 3, 4]]);
    }

    #[test]
    fn large_tensors_get_as_many_rings_as_the_op_allows() {
        let count = |most: i32, bytes: usize| rings(&Subdivisions::AtMost(most), &[2, 2], bytes).expect("rings").len();
        assert_eq!((count(-1, 1 << 30), count(0, 16 << 20), count(0, 1 << 30), count(3, 1 << 30)), (1, 1, 4, 6));
    }
}
