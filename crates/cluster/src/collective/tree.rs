//! TensorFlow's broadcast: along a binary tree over one device of each task, then along one over the devices of each task.

use crate::collective::peers::Peers;
use status::{Result, internal};
use tensor::{Shape, Tensor};

/// A tree over some members: their ranks in the group, and the place of the source among them.
#[derive(Debug, PartialEq, Eq)]
struct Tree {
    members: Vec<usize>,
    source: usize,
}

/// Sends or receives the value of the member `source`.
pub(super) async fn broadcast(peers: &Peers, source: usize, input: Option<Tensor>, shape: &Shape) -> Result<Tensor> {
    let mut value = input;
    for (number, tree) in trees(&peers.group.devices_by_task(), source).into_iter().enumerate() {
        let Some(place) = tree.members.iter().position(|&member| member == peers.rank) else { continue };
        if let Some(from) = tree.receives_from(place) {
            let key = format!(":{number}:{from}:{place}");
            value = Some(peers.receive(tree.members[from], key, shape.clone()).await?);
        }
        let value = value.as_ref().ok_or_else(|| internal!("a broadcast has no value to send on"))?;
        for to in tree.sends_to(place, peers.rank == source) {
            peers.offer(format!(":{number}:{place}:{to}"), value)?;
        }
    }
    value.ok_or_else(|| internal!("a broadcast reaches no tree of its group"))
}

/// The trees of a group with these numbers of devices on its tasks.
fn trees(devices_by_task: &[usize], source: usize) -> Vec<Tree> {
    let mut first = 0;
    let tasks: Vec<std::ops::Range<usize>> = devices_by_task
        .iter()
        .map(|&devices| {
            first += devices;
            first - devices..first
        })
        .collect();
    let mut trees = Vec::new();
    if tasks.len() > 1 {
        let members = tasks.iter().map(|task| if task.contains(&source) { source } else { task.start }).collect();
        let source = tasks.iter().position(|task| task.contains(&source)).unwrap_or(0);
        trees.push(Tree { members, source });
    }
    trees.extend(tasks.into_iter().map(|task| {
        let source = if task.contains(&source) { source - task.start } else { 0 };
        Tree { members: task.collect(), source }
    }));
    trees
}

impl Tree {
    /// The place from which another one receives. A source that is not the first one counts as if it stood before it too.
    fn receives_from(&self, place: usize) -> Option<usize> {
        match (place == self.source, self.source) {
            (true, _) => None,
            (false, 0) => Some((place - 1) / 2),
            (false, source) => Some((place / 2).checked_sub(1).unwrap_or(source)),
        }
    }

    fn sends_to(&self, place: usize, is_source: bool) -> Vec<usize> {
        let mut to = Vec::new();
        if is_source && self.source != 0 {
            to.extend((self.members.len() > 1).then_some(0));
            to.extend((self.members.len() > 2 && self.source != 1).then_some(1));
        }
        let next = if self.source == 0 { 2 * place + 1 } else { 2 * (place + 1) };
        to.extend((next..next + 2).filter(|&next| next < self.members.len() && next != self.source));
        to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every place receives exactly once, from the place that it expects, whatever the source is.
    #[test]
    fn every_member_receives_from_the_one_that_sends_to_it() {
        for devices in [vec![1; 7], vec![5], vec![2, 3, 1], vec![1, 1], vec![3, 3, 3, 3]] {
            for source in 0..devices.iter().sum() {
                for tree in trees(&devices, source) {
                    let is_source = |place: usize| tree.members[place] == source;
                    let mut sent: Vec<(usize, usize)> = (0..tree.members.len())
                        .flat_map(|place| tree.sends_to(place, is_source(place)).into_iter().map(move |to| (place, to)))
                        .collect();
                    let places = 0..tree.members.len();
                    let mut received: Vec<(usize, usize)> =
                        places.filter_map(|place| Some((tree.receives_from(place)?, place))).collect();
                    sent.sort_unstable();
                    received.sort_unstable();
                    assert_eq!(sent, received, "{devices:?} from {source}: {tree:?}");
                }
            }
        }
    }
}
