//! The groups of devices that a task knows. On the leader, a group is formed here: every device joins it, and all are
//! answered when it is complete. Plain data: it calls nothing and waits for nothing.

use crate::Task;
use crate::api::DeviceAttributes;
use crate::collective::instances::Instances;
use futures_channel::oneshot;
use graph::DeviceSpec;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use status::{Code, Error, Result, failed_precondition, internal, invalid};
use std::sync::Arc;

/// A complete group. Ranks are TensorFlow's: by the names of the tasks, as text, and by the devices of a task.
pub(crate) struct Group {
    pub key: i32,
    /// The type of all its devices.
    pub kind: String,
    /// By rank.
    pub members: Vec<Member>,
    /// The operations of the group that were compared.
    pub instances: Mutex<Instances>,
}

pub(crate) struct Member {
    pub device: DeviceAttributes,
    pub task: Task,
    /// The rank that the program gave it; otherwise its rank in the group.
    pub rank: usize,
}

/// A device that joins a group.
#[derive(Clone, Debug)]
pub(crate) struct Join {
    pub key: i32,
    pub size: usize,
    pub kind: String,
    pub device: DeviceAttributes,
    pub rank: Option<usize>,
}

/// A device with the rank that the program gave it.
pub(crate) type RankedDevice = (DeviceAttributes, Option<usize>);

impl Group {
    /// A group of these devices. The ranks that the program gives count within one task: others are not told.
    pub fn new(key: i32, kind: String, devices: Vec<RankedDevice>) -> Result<Group> {
        let mut members = Vec::with_capacity(devices.len());
        for (device, rank) in devices {
            let spec = DeviceSpec::parse(&device.name)?;
            let task = Task::of_device(&spec).ok_or_else(|| invalid!("{} names no task", device.name))?;
            members.push((task.to_string(), spec.kind, spec.id, Member { device, task, rank: 0 }, rank));
        }
        members.sort_by(|a, b| (&a.0, &a.1, a.2).cmp(&(&b.0, &b.1, b.2)));
        if members.windows(2).any(|pair| pair[0].0 != pair[1].0) {
            members.iter_mut().for_each(|member| member.4 = None);
        }
        check_ranks(&members.iter().map(|member| member.4).collect::<Vec<_>>())?;
        let ranked = |(place, (.., member, rank)): (usize, (_, _, _, Member, Option<usize>))| Member {
            rank: rank.unwrap_or(place),
            ..member
        };
        let members = members.into_iter().enumerate().map(ranked).collect();
        Ok(Group { key, kind, members, instances: Mutex::default() })
    }

    /// The rank of a device.
    pub fn rank_of(&self, device: &str) -> Option<usize> {
        self.members.iter().position(|member| member.device.name == device)
    }

    /// How many devices each task has, by rank.
    pub fn devices_by_task(&self) -> Vec<usize> {
        self.members.chunk_by(|a, b| a.task == b.task).map(<[Member]>::len).collect()
    }

    /// An error unless this device belongs to the group as it is.
    fn check(&self, join: &Join) -> Result<()> {
        check_form(&self.kind, self.members.len(), join)?;
        let Some(rank) = self.rank_of(&join.device.name) else {
            return Err(internal!(
                "Device {} is joining a group that is already full (group_key={})",
                join.device.name,
                join.key
            ));
        };
        if self.members[rank].device.incarnation != join.device.incarnation {
            return Err(failed_precondition!(
                "Device {} current incarnation doesn't match with one in the group. This usually means this worker has \
                 restarted but the collective leader hasn't, or this worker connects to a wrong cluster.",
                join.device.name
            ));
        }
        Ok(())
    }
}

fn check_form(kind: &str, size: usize, join: &Join) -> Result<()> {
    let (device, key) = (&join.device.name, join.key);
    if kind != join.kind {
        return Err(internal!(
            "Device {device} is joining a group with incompatible device type{kind} (group_key={key})"
        ));
    }
    if size != join.size {
        return Err(internal!(
            "Device {device} is joining a group with size{}, but that group has size {size} (group_key={key})",
            join.size
        ));
    }
    Ok(())
}

fn check_ranks(ranks: &[Option<usize>]) -> Result<()> {
    let given: FxHashSet<usize> = ranks.iter().flatten().copied().collect();
    let count = ranks.iter().flatten().count();
    let text = || {
        let ranks = ranks.iter().map(|rank| rank.map_or("-1".to_string(), |rank| rank.to_string()));
        ranks.collect::<Vec<_>>().join(",")
    };
    if count > 0 && count < ranks.len() {
        return Err(invalid!(
            "Only part of the group members have user given rank specified.Received ranks: {}",
            text()
        ));
    }
    if count > 0 && given.len() < ranks.len() {
        return Err(invalid!("Duplicate ranks specified for group members. Received ranks: {}", text()));
    }
    Ok(())
}

type Answer = Result<Arc<Group>>;

/// What becomes of a device that joins.
pub(crate) enum Joined {
    /// The group is complete, or cannot be formed.
    Now(Answer),
    /// Others are missing. Dropping the receiver withdraws the device.
    Later(oneshot::Receiver<Answer>),
}

/// The groups by key.
#[derive(Default)]
pub(crate) struct Groups {
    records: FxHashMap<i32, Record>,
}

enum Record {
    Forming(Forming),
    Complete(Arc<Group>),
    /// A member of the group did not answer, or has restarted, as the error says: the members form it again.
    Broken(Error),
    /// The group could not be formed. Every device hears of it once, and forms it again when it joins then.
    Failed {
        error: Error,
        told: FxHashSet<String>,
    },
}

struct Forming {
    size: usize,
    kind: String,
    devices: Vec<(RankedDevice, Vec<oneshot::Sender<Answer>>)>,
    /// Why the group is formed again, if it was complete before: tasks may take it for complete.
    again: Option<Error>,
}

impl Groups {
    /// A device joins a group, which is formed here.
    pub fn join(&mut self, join: &Join) -> Joined {
        match self.records.get_mut(&join.key) {
            Some(record @ Record::Complete(_)) => {
                let Record::Complete(group) = record else { return Joined::Now(Err(internal!("no group"))) };
                let answer = group.check(join).map(|()| group.clone());
                if let Err(error) = &answer
                    && error.code == Code::FailedPrecondition
                {
                    *record = Record::Broken(error.clone()); // the next attempt forms the group again
                }
                return Joined::Now(answer);
            }
            Some(Record::Failed { error, told }) => {
                if told.insert(join.device.name.clone()) {
                    return Joined::Now(Err(error.clone()));
                }
                self.records.remove(&join.key);
            }
            Some(Record::Forming(_) | Record::Broken(_)) | None => {}
        }
        self.form(join)
    }

    fn form(&mut self, join: &Join) -> Joined {
        let again = match self.records.get(&join.key) {
            Some(Record::Broken(error)) => Some(error.clone()),
            _ => None,
        };
        if again.is_some() {
            self.records.remove(&join.key);
        }
        let (size, kind) = (join.size, join.kind.clone());
        let new = || Record::Forming(Forming { size, kind, devices: Vec::new(), again });
        let record = self.records.entry(join.key).or_insert_with(new);
        let Record::Forming(forming) = record else { return Joined::Now(Err(internal!("the group is not forming"))) };
        let added = forming.add(join);
        let result = match added {
            Ok(waiting) if forming.devices.len() < forming.size => return Joined::Later(waiting),
            Ok(_) => {
                let devices = forming.devices.iter().map(|(device, _)| device.clone()).collect();
                Group::new(join.key, forming.kind.clone(), devices).map(Arc::new)
            }
            Err(error) => Err(error),
        };
        let mut told: FxHashSet<String> = FxHashSet::from_iter([join.device.name.clone()]);
        for ((device, _), waiting) in forming.devices.drain(..) {
            told.insert(device.name);
            waiting.into_iter().for_each(|waiting| drop(waiting.send(result.clone())));
        }
        *record = match &result {
            Ok(group) => Record::Complete(group.clone()),
            Err(error) => Record::Failed { error: error.clone(), told },
        };
        Joined::Now(result)
    }

    /// Remembers a group that another task has formed, unless one is known; gives the one that is known then.
    pub fn remember(&mut self, group: Group) -> Arc<Group> {
        if let Some(known) = self.find(group.key) {
            return known;
        }
        let group = Arc::new(group);
        self.records.insert(group.key, Record::Complete(group.clone()));
        group
    }

    /// A complete group.
    pub fn find(&self, key: i32) -> Option<Arc<Group>> {
        match self.records.get(&key)? {
            Record::Complete(group) => Some(group.clone()),
            _ => None,
        }
    }

    /// A complete group if this device belongs to it; an error if the device does not fit.
    pub fn find_member(&self, join: &Join) -> Option<Result<Arc<Group>>> {
        let group = self.find(join.key)?;
        Some(group.check(join).map(|()| group))
    }

    /// A complete group, or why there is none.
    pub fn lookup(&self, key: i32) -> Result<Arc<Group>> {
        match self.records.get(&key) {
            Some(Record::Complete(group)) => Ok(group.clone()),
            Some(Record::Failed { error, .. }) => Err(failed_precondition!(
                "Failed to run collective due to unsuccessful group initialization. Group initialization failed with error \
                 {error}"
            )),
            _ => Err(invalid!(
                "Group {key} is not initialized. Please call group initialization op first before invoking collective op."
            )),
        }
    }

    /// Removes a group that another task has formed, unless it was replaced meanwhile.
    pub fn forget(&mut self, group: &Arc<Group>) {
        if self.find(group.key).is_some_and(|known| Arc::ptr_eq(&known, group)) {
            self.records.remove(&group.key);
        }
    }

    /// Notes that a member of a group did not answer, so that the group is formed again.
    pub fn mark_broken(&mut self, broken: &Arc<Group>, error: &Error) {
        if self.find(broken.key).is_some_and(|known| Arc::ptr_eq(&known, broken)) {
            self.records.insert(broken.key, Record::Broken(error.clone()));
        }
    }

    /// An error if a group was complete and is formed again.
    pub fn check_whole(&self, key: i32) -> Result<()> {
        match self.records.get(&key) {
            Some(Record::Broken(error) | Record::Forming(Forming { again: Some(error), .. })) => {
                Err(broken(key, error))
            }
            _ => Ok(()),
        }
    }
}

/// The error of a task that takes a group for complete while it is formed again.
fn broken(key: i32, cause: &Error) -> Error {
    Error { message: format!("Group {key} is formed again after this failure: {}", cause.message), ..cause.clone() }
}

impl Forming {
    /// Adds a device; gives what it waits on.
    fn add(&mut self, join: &Join) -> Result<oneshot::Receiver<Answer>> {
        // Devices whose steps were cancelled are withdrawn.
        for (_, waiting) in &mut self.devices {
            waiting.retain(|waiting| !waiting.is_canceled());
        }
        self.devices.retain(|(_, waiting)| !waiting.is_empty());
        check_form(&self.kind, self.size, join)?;
        let (answer, waiting) = oneshot::channel();
        match self.devices.iter_mut().find(|((device, _), _)| device.name == join.device.name) {
            Some(((known, rank), answers)) => {
                (*known, *rank) = (join.device.clone(), join.rank); // a task that has restarted takes its old place
                answers.push(answer);
            }
            None => self.devices.push(((join.device.clone(), join.rank), vec![answer])),
        }
        Ok(waiting)
    }
}
