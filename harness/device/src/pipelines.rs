//! A pipeline cache in memory.
//!
//! A pipeline depends only on its kernel and on the kinds of its images. Drivers need milliseconds for one,
//! and the same few recur: a run prepares its plan once for each submission in flight, and for each way to
//! order dispatches.

use std::cell::RefCell;
use std::sync::Arc;

use ash::vk;
use plan::{DeviceError, Image, Interface, Kernel, KernelStage, Subgroups};

use crate::pipeline::{Pipeline, PipelineCompiler, descriptor_type};

/// The capacity for unused pipelines: those of some tests and their twins.
const CACHE_CAPACITY: usize = 24;

#[derive(Clone, PartialEq, Eq)]
struct PipelineKey {
    words: Vec<u32>,
    bindings: u32,
    images: Vec<vk::DescriptorType>,
    push_constant_bytes: u32,
    subgroups: Subgroups,
    stage: KernelStage,
    interface: Option<Interface>,
}

impl PipelineKey {
    fn for_kernel(kernel: &Kernel, images: &[Image]) -> PipelineKey {
        let images = kernel.images.iter().filter_map(|image| images.get(image.0 as usize));
        PipelineKey {
            words: kernel.words.clone(),
            bindings: kernel.bindings,
            images: images.map(descriptor_type).collect(),
            push_constant_bytes: kernel.push_constant_bytes + 8 * kernel.addresses.len() as u32,
            subgroups: kernel.subgroups,
            stage: kernel.stage.clone(),
            interface: kernel.interface.clone(),
        }
    }
}

/// Creates and caches the pipelines of a device.
pub(crate) struct PipelineStore {
    compiler: PipelineCompiler,
    /// The most recently used one is last.
    cache: RefCell<Vec<(PipelineKey, Arc<Pipeline>)>>,
}

impl PipelineStore {
    pub(crate) fn new(compiler: PipelineCompiler) -> PipelineStore {
        PipelineStore { compiler, cache: RefCell::default() }
    }

    pub(crate) fn compiler(&self) -> &PipelineCompiler {
        &self.compiler
    }

    /// Returns a pipeline for each kernel; missing ones are compiled in parallel.
    pub(crate) fn for_kernels(
        &self,
        kernels: &[Kernel],
        images: &[Image],
    ) -> Result<Vec<Arc<Pipeline>>, DeviceError> {
        let missing: Vec<&Kernel> = kernels
            .iter()
            .filter(|kernel| self.find_cached(&PipelineKey::for_kernel(kernel, images)).is_none())
            .collect();
        let mut own = Vec::with_capacity(missing.len());
        for (kernel, pipeline) in missing.iter().zip(compile_all(&self.compiler, &missing, images)) {
            let (key, pipeline) = (PipelineKey::for_kernel(kernel, images), Arc::new(pipeline?));
            self.insert_cached(key.clone(), Arc::clone(&pipeline));
            own.push((key, pipeline));
        }
        kernels
            .iter()
            .map(|kernel| {
                let key = PipelineKey::for_kernel(kernel, images);
                let own =
                    own.iter().find(|(known, _)| *known == key).map(|(_, pipeline)| Arc::clone(pipeline));
                own.or_else(|| self.find_cached(&key)).ok_or_else(|| DeviceError::Driver {
                    call: "vkCreateComputePipelines",
                    code: "no pipeline".to_owned(),
                })
            })
            .collect()
    }

    /// Takes back the pipelines of a prepared plan; those that are no longer cached are destroyed.
    pub(crate) fn release(&self, pipelines: impl IntoIterator<Item = Arc<Pipeline>>) {
        for pipeline in pipelines.into_iter().filter_map(Arc::into_inner) {
            self.compiler.destroy(&pipeline);
        }
    }

    /// Empties the cache. Pipelines in use are destroyed when their prepared plan returns them.
    pub(crate) fn clear_cache(&self) {
        self.release(self.cache.borrow_mut().drain(..).map(|(_, pipeline)| pipeline));
    }

    fn find_cached(&self, key: &PipelineKey) -> Option<Arc<Pipeline>> {
        let mut cache = self.cache.borrow_mut();
        let place = cache.iter().position(|(known, _)| known == key)?;
        let found = cache.remove(place);
        let pipeline = Arc::clone(&found.1);
        cache.push(found);
        Some(pipeline)
    }

    /// Caches a pipeline, and evicts the least recently used one beyond the capacity. A pipeline in use is
    /// destroyed by its last user.
    fn insert_cached(&self, key: PipelineKey, pipeline: Arc<Pipeline>) {
        let mut cache = self.cache.borrow_mut();
        cache.push((key, pipeline));
        if cache.len() > CACHE_CAPACITY {
            self.release([cache.remove(0).1]);
        }
    }
}

/// Compiles pipelines, one thread each.
fn compile_all(
    compiler: &PipelineCompiler,
    kernels: &[&Kernel],
    images: &[Image],
) -> Vec<Result<Pipeline, DeviceError>> {
    let [first, others @ ..] = kernels else { return Vec::new() };
    let interrupted =
        || DeviceError::Driver { call: "vkCreateComputePipelines", code: "its thread ended".to_owned() };
    std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(others.len());
        for kernel in others.iter().copied() {
            let make = move || compiler.compile_kernel(kernel, images);
            threads.push(std::thread::Builder::new().spawn_scoped(scope, make).ok());
        }
        let mut made = vec![compiler.compile_kernel(first, images)];
        made.extend(threads.into_iter().zip(others).map(|(thread, kernel)| match thread {
            Some(thread) => thread.join().unwrap_or_else(|_| Err(interrupted())),
            // No thread could be created.
            None => compiler.compile_kernel(kernel, images),
        }));
        made
    })
}
