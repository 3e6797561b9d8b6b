//! TensorFlow's ring: every member receives from the one before it and sends to the one after it. A reduction takes two
//! rounds: values are merged on the way of the first, and the result travels on in the second.

use crate::collective::merge::Reduction;
use crate::collective::peers::Peers;
use crate::collective::sections::{Rings, Sections};
use futures_util::future::try_join_all;
use math::Pool;
use status::Result;
use tensor::{Shape, Tensor};

/// The number of the member before another one in a ring of `n`, or of the `back`th before it.
fn before(rank: usize, back: usize, n: usize) -> usize {
    (rank + n * back - back) % n
}

/// Takes part in a reduction over several tasks.
pub(super) async fn reduce(
    peers: &Peers,
    rings: &Rings,
    reduction: &Reduction,
    pool: &Pool,
    input: Tensor,
) -> Result<Tensor> {
    let members = peers.group.members.len();
    let sections = Sections::aligned(input.elements(), input.dtype().size(), members * rings.len());
    let run = |section: usize| {
        let (ring, range) = (&rings[section % rings.len()], sections.range(section));
        let reduction_of_section =
            SectionReduction { peers, ring, chunk: section / rings.len(), section, reduction, pool };
        let own = input.slice_elements(range.start, [range.len()]);
        async move {
            match range.is_empty() {
                true => Ok(None),
                false => reduction_of_section.reduce(own?).await.map(|result| Some((range, result))),
            }
        }
    };
    let results = try_join_all((0..members * rings.len()).map(run)).await?;
    let mut output = Tensor::scratch_of(input.dtype(), input.shape())?;
    let size = input.dtype().size();
    for (range, result) in results.into_iter().flatten() {
        let bytes = result.buffer().map_or(&[][..], |buffer| buffer.bytes());
        output.bytes_mut()?[range.start * size..range.end * size].copy_from_slice(bytes);
    }
    Ok(output)
}

/// Takes part in a concatenation over several tasks.
pub(super) async fn gather(peers: &Peers, ring: &[usize], input: Tensor, shape: &Shape) -> Result<Tensor> {
    let members = peers.group.members.len();
    let run = |section: usize| {
        let own = input.clone();
        async move {
            let (rank, from) = place(ring, peers.rank);
            let value = match section == rank || own.elements() == 0 {
                true => own,
                false => peers.receive(from, key(0, section, before(rank, 1, members)), own.shape().clone()).await?,
            };
            if rank != before(section, 1, members) && value.elements() > 0 {
                peers.offer(key(0, section, rank), &value)?;
            }
            Ok::<Tensor, status::Error>(value)
        }
    };
    concat(&try_join_all((0..members).map(run)).await?, shape)
}

/// Tensors of one shape, one after the other.
pub(super) fn concat(values: &[Tensor], shape: &Shape) -> Result<Tensor> {
    let Some(first) = values.first() else { return Err(status::internal!("a group has no members")) };
    let mut output = Tensor::scratch_of(first.dtype(), shape)?;
    let size = first.byte_size();
    if size > 0 {
        for (part, value) in output.bytes_mut()?.chunks_mut(size).zip(values) {
            part.copy_from_slice(value.buffer().map_or(&[][..], |buffer| buffer.bytes()));
        }
    }
    Ok(output)
}

/// The place of a member in a ring, and the member before it.
fn place(ring: &[usize], rank: usize) -> (usize, usize) {
    let place = ring.iter().position(|&member| member == rank).unwrap_or(0);
    (place, ring[before(place, 1, ring.len())])
}

fn key(pass: usize, section: usize, source: usize) -> String {
    format!(":{pass}:{section}:{source}")
}

/// One section of a reduction.
struct SectionReduction<'a> {
    peers: &'a Peers,
    ring: &'a [usize],
    /// The place of the member where the section begins its first round.
    chunk: usize,
    section: usize,
    reduction: &'a Reduction,
    pool: &'a Pool,
}

impl SectionReduction<'_> {
    async fn reduce(&self, own: Tensor) -> Result<Tensor> {
        let members = self.ring.len();
        let (rank, from) = place(self.ring, self.peers.rank);
        let (shape, source) = (own.shape().clone(), before(rank, 1, members));
        let mut value = own;
        if rank != self.chunk {
            let received = self.peers.receive(from, key(0, self.section, source), shape.clone()).await?;
            value = self.reduction.merge(self.pool, value, &received)?;
        }
        if rank == before(self.chunk, 1, members) {
            value = self.reduction.finish(self.pool, value)?;
        } else {
            self.peers.offer(key(0, self.section, rank), &value)?;
            drop(value);
            value = self.peers.receive(from, key(1, self.section, source), shape).await?;
        }
        if rank != before(self.chunk, 2, members) {
            self.peers.offer(key(1, self.section, rank), &value)?;
        }
        Ok(value)
    }
}

/// Takes part in an exchange of slices over several tasks: every member sends one to each.
pub(super) async fn all_to_all(peers: &Peers, input: &Tensor) -> Result<Tensor> {
    let (members, own) = (peers.group.members.len(), peers.rank);
    let each = input.elements() / members;
    let slice = |to: usize| input.slice_elements(to * each, [each]);
    for to in (0..members).filter(|&to| to != own && each > 0) {
        peers.offer(format!("{own}{to}"), &slice(to)?)?;
    }
    let receive = async |from: usize| match from == own || each == 0 {
        true => slice(own),
        false => peers.receive(from, format!("{from}{own}"), Shape::new(&[each])).await,
    };
    let received = try_join_all((0..members).map(receive)).await?;
    let mut slices = vec![None; members];
    for (from, slice) in received.into_iter().enumerate() {
        slices[peers.group.members[from].rank] = Some(slice);
    }
    concat(&slices.into_iter().flatten().collect::<Vec<_>>(), input.shape())
}
