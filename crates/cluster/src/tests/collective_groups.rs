//! Groups and their operations as plain data: ranks, members that differ, and what they hear.

use crate::api::DeviceAttributes;
use crate::collective::graph_key::graph_key;
use crate::collective::groups::{Group, Groups, Join, Joined};
use crate::collective::instances::{Arrived, BROADCAST, CompleteInstance, Instances};
use crate::tests::toy;
use status::{Code, Error, Result};
use std::sync::Arc;
use tensor::{DType, Shape};

fn join(device: &str, size: usize) -> Join {
    let (task, number) = device.split_once('/').expect("task/device");
    let name = format!("/job:worker/replica:0/task:{task}/device:CPU:{number}");
    let device = DeviceAttributes { name, kind: "CPU".into(), memory_limit: 0, incarnation: 5 };
    Join { key: 1, size, kind: "CPU".into(), device, rank: None }
}

/// The answer, which is there at once.
fn now(joined: Joined) -> Result<Arc<Group>> {
    match joined {
        Joined::Now(answer) => answer,
        Joined::Later(mut waiting) => waiting.try_recv().ok().flatten().expect("an answer"),
    }
}

fn fails(joined: Joined) -> Error {
    now(joined).err().expect("the group cannot be formed")
}

#[test]
fn ranks_follow_the_names_of_tasks_as_text_and_the_numbers_of_devices() {
    let mut groups = Groups::default();
    let devices = ["2/0", "10/10", "0/0", "10/2", "10/0"];
    let mut joined: Vec<Joined> = devices.iter().map(|device| groups.join(&join(device, 5))).collect();
    let group = now(joined.pop().expect("the last one"));
    let group = group.expect("a group");
    let names: Vec<&str> = group.members.iter().map(|member| &member.device.name[27..]).collect();
    assert_eq!(names, ["0/device:CPU:0", "10/device:CPU:0", "10/device:CPU:2", "10/device:CPU:10", "2/device:CPU:0"]);
    assert_eq!(group.devices_by_task(), [1, 3, 1]);
    assert!(joined.into_iter().all(|joined| now(joined).is_ok_and(|other| Arc::ptr_eq(&other, &group))));
}

#[test]
fn every_member_hears_once_that_a_group_cannot_be_formed() {
    let mut groups = Groups::default();
    let first = groups.join(&join("0/0", 2));
    let text = "Device /job:worker/replica:0/task:1/device:CPU:0 is joining a group with size3, but that group has size 2 \
                (group_key=1)";
    assert_eq!(fails(groups.join(&join("1/0", 3))).message, text);
    assert_eq!(fails(first).message, text);
    assert_eq!(fails(groups.join(&join("2/0", 2))).message, text, "a device that joins later hears it too");
    let again = groups.join(&join("0/0", 2));
    assert!(now(groups.join(&join("1/0", 2))).is_ok() && now(again).is_ok(), "then the group is formed");
}

#[test]
fn a_full_group_refuses_others_and_forms_again_for_a_member_that_has_restarted() {
    let mut groups = Groups::default();
    let only = now(groups.join(&join("0/0", 1))).expect("a group");
    let error = fails(groups.join(&join("1/0", 1)));
    assert!(error.code == Code::Internal && error.message.contains("a group that is already full"), "{error}");
    let mut restarted = join("0/0", 1);
    restarted.device.incarnation = 6;
    let error = fails(groups.join(&restarted));
    assert!(error.code == Code::FailedPrecondition, "{error}");
    assert!(groups.check_whole(1).is_err(), "tasks that know the old group must join again");
    let new = now(groups.join(&restarted)).expect("a group");
    assert!(!Arc::ptr_eq(&new, &only) && groups.check_whole(1).is_ok());
}

#[test]
fn a_device_whose_step_was_cancelled_is_withdrawn() {
    let mut groups = Groups::default();
    drop(groups.join(&join("0/0", 2)));
    let waiting = groups.join(&join("1/0", 2));
    assert!(matches!(waiting, Joined::Later(_)), "the first one has gone");
    assert!(now(groups.join(&join("0/0", 2))).is_ok() && now(waiting).is_ok());
}

#[test]
fn ranks_that_the_program_gives_are_all_different() {
    let ranked = |ranks: [Option<usize>; 2]| {
        let mut groups = Groups::default();
        let _first = groups.join(&Join { rank: ranks[0], ..join("0/0", 2) });
        now(groups.join(&Join { rank: ranks[1], ..join("0/1", 2) }))
    };
    let text = |ranks| ranked(ranks).err().map_or(String::new(), |error| error.message);
    assert_eq!(text([Some(1), Some(1)]), "Duplicate ranks specified for group members. Received ranks: 1,1");
    assert!(text([Some(1), None]).starts_with("Only part of the group members have user given rank specified."));
    let mut groups = Groups::default();
    let _first = groups.join(&Join { rank: Some(1), ..join("0/0", 2) });
    let group = now(groups.join(&join("1/0", 2))).expect("another task is not told the ranks");
    assert_eq!(group.members.iter().map(|member| member.rank).collect::<Vec<_>>(), [0, 1]);
}

fn operation(kind: i32, device: usize) -> CompleteInstance {
    CompleteInstance {
        name: "op".into(),
        kind,
        dtype: DType::F32,
        shape: Shape::new(&[2]),
        group_key: 1,
        group_size: 2,
        instance_key: 4,
        device_type: "CPU".into(),
        subdiv_offsets: vec![0],
        device: format!("device {device}"),
        is_source: false,
        step_id: 0,
    }
}

#[test]
fn members_that_ask_for_another_operation_are_refused() {
    let mut instances = Instances::default();
    let answer = |arrived: Arrived| match arrived {
        Arrived::Now(answer) => answer,
        Arrived::Later(_) => panic!("a reduction does not wait"),
    };
    assert_eq!(answer(instances.arrive(&operation(0, 0), 0, 2)), Ok(-1));
    let other = CompleteInstance { shape: Shape::new(&[3]), ..operation(0, 1) };
    let text = "Shape mismatch in the collective instance 4. Op at device device 1 expected shape [3] but another member \
                in the group expected shape [2]. This is likely due to different input shapes at different members of the \
                collective op.";
    assert_eq!(answer(instances.arrive(&other, 1, 2)).expect_err("refused").message, text);
    assert_eq!(answer(instances.arrive(&other, 1, 2)), Ok(-1), "the next step may have another shape");
    let text = "Collective instance 4 expected type 0 and data_type 1 but got type 2 and data_type 1";
    assert_eq!(answer(instances.arrive(&operation(2, 0), 0, 2)).expect_err("refused").message, text);
}

#[test]
fn a_broadcast_has_exactly_one_source() {
    let run = |sources: [bool; 2]| {
        let mut instances = Instances::default();
        let member = |rank: usize| CompleteInstance { is_source: sources[rank], ..operation(BROADCAST, rank) };
        let Arrived::Later(mut first) = instances.arrive(&member(0), 0, 2) else { panic!("the second is missing") };
        let Arrived::Now(second) = instances.arrive(&member(1), 1, 2) else { panic!("all are there") };
        assert_eq!(first.try_recv().ok().flatten(), Some(second.clone()));
        second.map_err(|error| error.message)
    };
    assert_eq!((run([true, false]), run([false, true])), (Ok(0), Ok(1)));
    let text = "Instance 4 already has source 0, received second claim from 1";
    assert_eq!(run([true, true]), Err(text.to_string()));
    assert!(run([false, false]).is_err_and(|text| text.starts_with("Instance 4 found no source for broadcast.")));
}

#[test]
fn graphs_with_collectives_have_a_key() {
    let key = |text: &str| graph_key(std::iter::once(&toy::parse(text)), toy::registry().as_ref());
    assert_eq!(key("a @worker:0 = Number 1; b @worker:0 = Sum a a"), 0);
    let at_run_time = "a @worker:0 = Number 1; f @worker:0 = Floats 3 a; r @worker:0 = AllReduce 2 f a";
    assert_eq!(key(at_run_time) as u64, 0x8774_aa60_5c72_9c72);
}
