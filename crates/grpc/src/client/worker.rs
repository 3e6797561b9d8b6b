//! Another task's WorkerService.

use crate::server::MAX_MESSAGE;
use crate::wire;
use cluster::{
    CreateWorkerSession, DeviceAttributes, Future, RecvTensor, RegisterGraph, RunGraph, RunGraphAnswer, WorkerClient,
};
use proto::tensorflow as pb;
use proto::tensorflow::worker_service_client::WorkerServiceClient;
use status::{Code, Error, Result};
use std::time::Duration;
use tensor::Tensor;
use tonic::transport::Channel;

/// A far task.
pub(crate) struct FarWorker {
    pub task: String,
    pub client: WorkerServiceClient<Channel>,
}

impl FarWorker {
    pub fn new(task: String, channel: Channel) -> FarWorker {
        let client = WorkerServiceClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE)
            .max_encoding_message_size(MAX_MESSAGE);
        FarWorker { task, client }
    }

    fn error(&self, status: tonic::Status, method: &str) -> Error {
        let mut error = wire::error(status);
        if error.code == Code::Unavailable {
            error.message = format!(
                "{}\nAdditional GRPC error information from remote target {} while calling /tensorflow.WorkerService/{method}:\n:{}",
                error.message, self.task, error.message
            );
        }
        error
    }
}

/// How often a task that is not up yet is asked again.
const RETRY: Duration = Duration::from_millis(100);

impl WorkerClient for FarWorker {
    /// Waits for a task that is not up yet.
    fn get_status(&self) -> Future<'_, Vec<DeviceAttributes>> {
        Box::pin(async move {
            let mut tries = 0u32;
            loop {
                let mut client = self.client.clone();
                match client.get_status(pb::GetStatusRequest {}).await {
                    Ok(answer) => {
                        let devices = answer.into_inner().device_attributes;
                        return Ok(devices.into_iter().map(wire::decode_device).collect());
                    }
                    Err(status) if status.code() == tonic::Code::Unavailable => {
                        if tries.is_multiple_of(100) {
                            let task = &self.task;
                            tracing::info!("CreateSession still waiting for response from worker: {task}");
                        }
                        tries += 1;
                        tokio::time::sleep(RETRY).await;
                    }
                    Err(status) => return Err(self.error(status, "GetStatus")),
                }
            }
        })
    }

    fn create_session(&self, request: CreateWorkerSession) -> Future<'_, ()> {
        Box::pin(async move {
            let message = wire::encode_create_worker_session(request);
            let answer = self.client.clone().create_worker_session(message).await;
            answer.map(drop).map_err(|status| self.error(status, "CreateWorkerSession"))
        })
    }

    fn delete_session(&self, session: String) -> Future<'_, ()> {
        Box::pin(async move {
            let mut request = tonic::Request::new(pb::DeleteWorkerSessionRequest { session_handle: session });
            request.set_timeout(Duration::from_secs(10));
            let answer = self.client.clone().delete_worker_session(request).await;
            answer.map(drop).map_err(|status| self.error(status, "DeleteWorkerSession"))
        })
    }

    fn register_graph(&self, request: RegisterGraph) -> Future<'_, String> {
        Box::pin(async move {
            let message = wire::encode_register_graph(request);
            let answer = self.client.clone().register_graph(message).await;
            let answer = answer.map_err(|status| self.error(status, "RegisterGraph"))?;
            Ok(answer.into_inner().graph_handle)
        })
    }

    fn run_graph(&self, request: RunGraph) -> Future<'_, RunGraphAnswer> {
        Box::pin(async move {
            let message = wire::encode_run_graph(request)?;
            let answer = self.client.clone().run_graph(message).await;
            let answer = answer.map_err(|status| self.error(status, "RunGraph"))?;
            wire::decode_run_graph_answer(answer.into_inner())
        })
    }

    fn cleanup_graph(&self, step_id: u64) -> Future<'_, ()> {
        Box::pin(async move {
            let message = pb::CleanupGraphRequest { step_id: step_id as i64 };
            let answer = self.client.clone().cleanup_graph(message).await;
            answer.map(drop).map_err(|status| self.error(status, "CleanupGraph"))
        })
    }

    fn cleanup_all(&self, containers: Vec<String>) -> Future<'_, ()> {
        Box::pin(async move {
            let answer = self.client.clone().cleanup_all(pb::CleanupAllRequest { container: containers }).await;
            answer.map(drop).map_err(|status| self.error(status, "CleanupAll"))
        })
    }

    fn recv_tensor(&self, request: RecvTensor) -> Future<'_, (Tensor, bool)> {
        Box::pin(async move {
            let message = wire::encode_recv_tensor(request);
            let answer = self.client.clone().recv_tensor(message).await;
            let answer = answer.map_err(|status| self.error(status, "RecvTensor"))?.into_inner();
            let dead = answer.is_dead;
            let tensor: Result<Tensor> = tensor::wire::decode_tensor(answer.tensor.unwrap_or_default());
            match tensor {
                Err(_) if dead => Ok((Tensor::vector::<f32>(&[]), true)),
                tensor => Ok((tensor?, dead)),
            }
        })
    }
}
