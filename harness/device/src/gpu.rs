//! What plans are prepared with: a logical device, its memory, its pipelines, and whether something was left running.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex};

use ash::ext::mesh_shader;

use crate::memory::Heap;
use crate::physical::ComputeFamily;
use crate::pipelines::Pipelines;
use crate::scoped::Scoped;

/// A logical device and what belongs to it. Whoever owns it ends it.
pub(crate) struct Gpu {
    pub(crate) raw: ash::Device,
    /// Ends before the logical device.
    pub(crate) heap: ManuallyDrop<Heap>,
    pub(crate) pipelines: Pipelines,
    pub(crate) families: Vec<ComputeFamily>,
    /// Nanoseconds of a tick of the device's clock.
    pub(crate) timestamp_period: f32,
    pub(crate) max_workgroups: u32,
    /// How dependencies are recorded.
    pub(crate) scoped: Scoped,
    /// Launches mesh and task shaders, where the device has them.
    pub(crate) mesh: Option<mesh_shader::Device>,
    /// Held by whoever submits: threads of the host do so too.
    pub(crate) submitting: Arc<Mutex<()>>,
    abandoned: Cell<bool>,
}

impl Gpu {
    pub(crate) fn new(
        heap: Heap,
        pipelines: Pipelines,
        families: Vec<ComputeFamily>,
        (timestamp_period, max_workgroups): (f32, u32),
        (scoped, mesh): (Scoped, Option<mesh_shader::Device>),
    ) -> Gpu {
        Gpu {
            raw: heap.raw.clone(),
            heap: ManuallyDrop::new(heap),
            pipelines,
            families,
            timestamp_period,
            max_workgroups,
            scoped,
            mesh,
            submitting: Arc::default(),
            abandoned: Cell::new(false),
        }
    }

    /// To be held while something is submitted.
    pub(crate) fn submits(&self) -> std::sync::MutexGuard<'_, ()> {
        self.submitting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Leaves everything to the end of the process: something still runs.
    pub(crate) fn abandon(&self) {
        self.abandoned.set(true);
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.get()
    }
}
