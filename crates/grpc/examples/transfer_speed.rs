//! How fast tensors travel between two tasks on this machine, beside a plain TCP copy of the same size.
//!
//! `cargo run --release -p flowgrid-grpc --example transfer_speed`

use cluster::{
    ClusterSpec, LocalRuntime, Master, NoTransport, RecvTensor, Task, Transport, Worker, WorkerClient, WorkerOptions,
};
use flowgrid_grpc as grpc;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;
use tensor::Tensor;
use tokio::runtime::{Builder, Runtime};

const SIZES: [usize; 4] = [1 << 20, 16 << 20, 64 << 20, 256 << 20];

fn main() -> status::Result<()> {
    let (far, near) = (runtime(), runtime());
    let worker = worker()?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| status::internal!("no port: {error}"))?;
    let serving = far.block_on(grpc::serve(Master::new(worker.clone()), listener, grpc::PATIENCE))?;
    let transport = grpc::GrpcTransport::new(near.handle().clone());
    let client = transport.connect(worker.task(), &serving.address.to_string())?;
    let device = &worker.device_attributes()[0];
    let key = graph::RendezvousKeyPrefix::new(&device.name, device.incarnation, &device.name, "x").root_key();
    println!("{:>5} | {:>12} | {:>12} | {:>6} | CPU ms/GB", "MiB", "TCP GB/s", "Recv GB/s", "share");
    for size in SIZES {
        let rounds = ((1 << 30) / size).clamp(5, 200) as u64;
        let tensor = Tensor::zeros::<f32>([size / 4])?;
        let (plain, plain_cpu) = tcp_speed(size, rounds);
        let mut step = size as u64;
        let mut round = || -> status::Result<()> {
            step += 1;
            worker.offer(step, &key, tensor.clone())?;
            receive(&near, &client, step, &key)
        };
        round()?;
        let (speed, cpu) = median(rounds, size, || round().is_ok());
        let (mib, share) = (size >> 20, 100.0 * speed / plain);
        println!("{mib:>5} | {plain:>12.2} | {speed:>12.2} | {share:>5.0}% | {plain_cpu:.0} {cpu:.0}");
    }
    far.block_on(serving.stop());
    Ok(())
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

fn worker() -> status::Result<Arc<Worker>> {
    Ok(Worker::new(WorkerOptions {
        task: Task { job: "ps".into(), index: 0 },
        cluster: ClusterSpec::new().with_task("ps", 0, "127.0.0.1:1")?,
        registry: Arc::new(op::Registry::new(&[])?),
        devices: 1,
        inter_op_threads: 1,
        intra_op_threads: 1,
        transport: Arc::new(NoTransport),
        runtime: Arc::new(LocalRuntime::default()),
        differentiate: None,
        sync_policy: Default::default(),
        extensions: Default::default(),
    }))
}

fn receive(runtime: &Runtime, client: &Arc<dyn WorkerClient>, step_id: u64, key: &str) -> status::Result<()> {
    let (tensor, _) =
        runtime.block_on(client.recv_tensor(RecvTensor { step_id, key: key.to_string(), request_id: 0 }))?;
    std::hint::black_box(&tensor);
    Ok(())
}

/// GB/s of the median round, and the milliseconds of CPU time per GB, which others on the machine disturb less.
fn median(rounds: u64, size: usize, mut round: impl FnMut() -> bool) -> (f64, f64) {
    let cpu = cpu_ms();
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            assert!(round(), "a round failed");
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let gigabytes = rounds as f64 * size as f64 / 1e9;
    (size as f64 / times[times.len() / 2] / 1e9, (cpu_ms() - cpu) / gigabytes)
}

/// CPU time of this process; zero where the system does not tell.
fn cpu_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    [11, 12].iter().filter_map(|&field| fields.get(field)?.parse::<f64>().ok()).sum::<f64>() * 10.0
}

/// A byte asks, `size` bytes answer, into one block that is kept.
fn tcp_speed(size: usize, rounds: u64) -> (f64, f64) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let sender = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let block = vec![1u8; size];
        while stream.read_exact(&mut [0]).is_ok() {
            stream.write_all(&block).expect("sent");
        }
    });
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_nodelay(true).expect("an option");
    let mut block = vec![0u8; size];
    let mut round = || stream.write_all(&[1]).is_ok() && stream.read_exact(&mut block).is_ok();
    round();
    let speed = median(rounds, size, round);
    drop(stream);
    sender.join().expect("the sender ends");
    speed
}
