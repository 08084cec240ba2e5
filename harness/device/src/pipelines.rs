//! A pipeline cache in memory, with compilation ahead of use.
//!
//! A pipeline depends only on its kernel and on the kinds of its images. Drivers need milliseconds for one,
//! and the same few recur: a run prepares its plan once for each submission in flight, and for each way to
//! order dispatches.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use ash::vk;
use plan::{DeviceError, Image, Interface, Kernel, KernelStage, Subgroups};

use crate::pipeline::{Pipeline, PipelineCompiler, descriptor_type};

/// The capacity for unused pipelines: those of a test, of its twin and of the next test.
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
            images: images.map(|image| descriptor_type(image.shape)).collect(),
            push_constant_bytes: kernel.push_constant_bytes + 8 * kernel.addresses.len() as u32,
            subgroups: kernel.subgroups,
            stage: kernel.stage.clone(),
            interface: kernel.interface.clone(),
        }
    }
}

/// The cached pipelines of a device, the most recently used one last.
type CachedPipelines = Mutex<Vec<(PipelineKey, Arc<Pipeline>)>>;

/// Creates and caches the pipelines of a device.
pub(crate) struct PipelineStore {
    compiler: PipelineCompiler,
    cache: Arc<CachedPipelines>,
    /// Threads that compile ahead.
    background_threads: RefCell<Vec<JoinHandle<()>>>,
}

impl PipelineStore {
    pub(crate) fn new(compiler: PipelineCompiler) -> PipelineStore {
        PipelineStore { compiler, cache: Arc::default(), background_threads: RefCell::default() }
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
        self.join_background_threads();
        let missing: Vec<&Kernel> = kernels
            .iter()
            .filter(|kernel| find_cached(&self.cache, &PipelineKey::for_kernel(kernel, images)).is_none())
            .collect();
        let made = compile_all(&self.compiler, &missing, images);
        let mut own = Vec::with_capacity(missing.len());
        for (kernel, pipeline) in missing.iter().zip(made) {
            let (key, pipeline) = (PipelineKey::for_kernel(kernel, images), Arc::new(pipeline?));
            insert_cached(&self.compiler, &self.cache, key.clone(), Arc::clone(&pipeline));
            own.push((key, pipeline));
        }
        kernels
            .iter()
            .map(|kernel| {
                let key = PipelineKey::for_kernel(kernel, images);
                let own =
                    own.iter().find(|(known, _)| *known == key).map(|(_, pipeline)| Arc::clone(pipeline));
                own.or_else(|| find_cached(&self.cache, &key)).ok_or_else(|| DeviceError::Driver {
                    call: "vkCreateComputePipelines",
                    code: "no pipeline".to_owned(),
                })
            })
            .collect()
    }

    /// Compiles kernels on a background thread. Errors are dropped; they recur when the pipeline is
    /// requested.
    pub(crate) fn compile_in_background(&self, kernels: Vec<Kernel>, images: Vec<Image>) {
        self.join_background_threads();
        let (compiler, made) = (self.compiler.clone(), Arc::clone(&self.cache));
        let thread = std::thread::Builder::new().spawn(move || {
            for kernel in &kernels {
                let key = PipelineKey::for_kernel(kernel, &images);
                if find_cached(&made, &key).is_none()
                    && let Ok(pipeline) = compiler.compile_kernel(kernel, &images)
                {
                    insert_cached(&compiler, &made, key, Arc::new(pipeline));
                }
            }
        });
        // If no thread can be created, each kernel is compiled when it is requested.
        self.background_threads.borrow_mut().extend(thread);
    }

    /// Returns the pipelines of a prepared plan; those that are no longer cached are destroyed.
    pub(crate) fn release(&self, pipelines: Vec<Arc<Pipeline>>) {
        for pipeline in pipelines {
            if let Some(pipeline) = Arc::into_inner(pipeline) {
                self.compiler.destroy(&pipeline);
            }
        }
    }

    /// Empties the cache. Pipelines in use are destroyed when their prepared plan returns them.
    pub(crate) fn clear_cache(&self) {
        self.join_background_threads();
        let mut made = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, pipeline) in made.drain(..) {
            if let Some(pipeline) = Arc::into_inner(pipeline) {
                self.compiler.destroy(&pipeline);
            }
        }
    }

    /// Waits until no compilation ahead is running.
    fn join_background_threads(&self) {
        for thread in self.background_threads.borrow_mut().drain(..) {
            if thread.join().is_err() {
                tracing::error!("creating pipelines in advance was interrupted");
            }
        }
    }
}

fn find_cached(cache: &CachedPipelines, key: &PipelineKey) -> Option<Arc<Pipeline>> {
    let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
    let place = cache.iter().position(|(known, _)| known == key)?;
    let found = cache.remove(place);
    let pipeline = Arc::clone(&found.1);
    cache.push(found);
    Some(pipeline)
}

/// Caches a pipeline, and evicts the least recently used one beyond the capacity.
fn insert_cached(
    compiler: &PipelineCompiler,
    cache: &CachedPipelines,
    key: PipelineKey,
    pipeline: Arc<Pipeline>,
) {
    let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
    cache.push((key, pipeline));
    if cache.len() > CACHE_CAPACITY {
        let (_, oldest) = cache.remove(0);
        // A pipeline in use is destroyed by its last user.
        if let Some(oldest) = Arc::into_inner(oldest) {
            compiler.destroy(&oldest);
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
