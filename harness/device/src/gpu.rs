//! A logical device with its memory and pipelines, and a flag for submissions that never ended.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex};

use ash::ext::mesh_shader;

use crate::memory::MemoryHeap;
use crate::physical::ComputeFamily;
use crate::pipelines::PipelineStore;
use crate::scoped::DependencyRecorder;

/// A logical device and its resources. The owner destroys it.
pub(crate) struct Gpu {
    pub(crate) raw: ash::Device,
    /// Dropped before the logical device.
    pub(crate) heap: ManuallyDrop<MemoryHeap>,
    pub(crate) pipelines: PipelineStore,
    pub(crate) families: Vec<ComputeFamily>,
    /// Nanoseconds per tick of the device's clock.
    pub(crate) timestamp_period: f32,
    pub(crate) max_workgroups: u32,
    /// The functions that record dependencies.
    pub(crate) dependency_recorder: DependencyRecorder,
    /// The functions that launch mesh and task shaders, if supported.
    pub(crate) mesh: Option<mesh_shader::Device>,
    /// Held during submissions, because host threads submit, too.
    pub(crate) submission_lock: Arc<Mutex<()>>,
    abandoned: Cell<bool>,
}

impl Gpu {
    pub(crate) fn new(
        heap: MemoryHeap,
        pipelines: PipelineStore,
        families: Vec<ComputeFamily>,
        timestamp_period: f32,
        max_workgroups: u32,
        dependency_recorder: DependencyRecorder,
        mesh: Option<mesh_shader::Device>,
    ) -> Gpu {
        Gpu {
            raw: heap.raw.clone(),
            heap: ManuallyDrop::new(heap),
            pipelines,
            families,
            timestamp_period,
            max_workgroups,
            dependency_recorder,
            mesh,
            submission_lock: Arc::default(),
            abandoned: Cell::new(false),
        }
    }

    /// Returns the guard to hold during a submission.
    pub(crate) fn lock_submission(&self) -> std::sync::MutexGuard<'_, ()> {
        self.submission_lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Leaves all objects alive until the process ends, because a submission is still running.
    pub(crate) fn abandon(&self) {
        self.abandoned.set(true);
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.get()
    }
}
