//! Dumps of a debugger: names of files, and what is in them.

use super::evaluate::{Evaluation, constant, graph, refusal};
use graph::{AttrList, AttrValue, Output};
use status::Code;
use tensor::{Bytes, Tensor};

fn urls(url: String) -> AttrValue {
    AttrValue::from(AttrList { strings: vec![Bytes::from(url)], ..AttrList::default() })
}

fn identity(x: &Output, url: String) -> Output {
    let node = x.scope().op("DebugIdentity").input(x).attr("debug_urls", urls(url));
    let device = "/job:worker/replica:0/task:1/device:CPU:0";
    node.attr("tensor_name", "scope/x:1").attr("device_name", device).output()
}

#[test]
fn a_dump_is_an_event_in_the_folder_of_its_device() {
    let root = std::env::temp_dir().join(format!("flowgrid-dump-{}", std::process::id()));
    let g = graph();
    let x = constant(&g, Tensor::vector(&[1f32, 2.]));
    let passed = Evaluation::new().value(&identity(&x, format!("file://{}", root.display()))).unwrap();
    assert_eq!(passed.values::<f32>().unwrap(), [1., 2.]);
    let folder = root.join("_tfdbg_device_,job_worker,replica_0,task_1,device_CPU_0/scope");
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let name = files[0].file_name().unwrap().to_str().unwrap();
    assert!(files.len() == 1 && name.starts_with("x_1_DebugIdentity_"), "{name}");
    assert!(io::event::is_event(&std::fs::read(&files[0]).unwrap().into()));
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn debuggers_at_the_end_of_a_connection_are_refused() {
    let g = graph();
    let x = constant(&g, Tensor::scalar(1f32));
    let error = Evaluation::new().value(&identity(&x, "grpc://host:1".to_string())).unwrap_err();
    assert_eq!(error.code, Code::Unimplemented);
    assert!(error.message.contains("dump to a file:// URL"));
    let other = refusal(Evaluation::new().value(&identity(&x, "ftp://host".to_string())));
    assert_eq!(other, "Invalid debug target URL: ftp://host");
}
