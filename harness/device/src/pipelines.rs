//! A pipeline cache in memory, with compilation ahead of use.
//!
//! A pipeline depends only on its kernel and on the kinds of its images. Drivers need milliseconds for one,
//! and the same few recur: a run prepares its plan once for each submission in flight, and for each way to
//! order dispatches.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use ash::vk;
use plan::{DeviceError, Image, Interface, Kernel, Stage, Subgroups};

use crate::pipeline::{Maker, Pipeline, descriptor_type};

/// The capacity for unused pipelines: those of a test, of its twin and of the next test.
const KEPT: usize = 24;

/// The cache key.
#[derive(Clone, PartialEq, Eq)]
struct Key {
    words: Vec<u32>,
    bindings: u32,
    images: Vec<vk::DescriptorType>,
    pushed: u32,
    subgroups: Subgroups,
    stage: Stage,
    interface: Option<Interface>,
}

impl Key {
    fn of(kernel: &Kernel, images: &[Image]) -> Key {
        let images = kernel.images.iter().filter_map(|image| images.get(image.0 as usize));
        Key {
            words: kernel.words.clone(),
            bindings: kernel.bindings,
            images: images.map(|image| descriptor_type(image.shape)).collect(),
            pushed: kernel.push_constant_bytes + 8 * kernel.addresses.len() as u32,
            subgroups: kernel.subgroups,
            stage: kernel.stage.clone(),
            interface: kernel.interface.clone(),
        }
    }
}

/// The cached pipelines of a device, the most recently used one last.
type Made = Mutex<Vec<(Key, Arc<Pipeline>)>>;

/// Creates and caches the pipelines of a device.
pub(crate) struct Pipelines {
    maker: Maker,
    made: Arc<Made>,
    /// Threads that compile ahead.
    ahead: RefCell<Vec<JoinHandle<()>>>,
}

impl Pipelines {
    pub(crate) fn new(maker: Maker) -> Pipelines {
        Pipelines { maker, made: Arc::default(), ahead: RefCell::default() }
    }

    /// Returns the pipeline compiler.
    pub(crate) fn maker(&self) -> &Maker {
        &self.maker
    }

    /// Returns a pipeline for each kernel; missing ones are compiled in parallel.
    pub(crate) fn of(&self, kernels: &[Kernel], images: &[Image]) -> Result<Vec<Arc<Pipeline>>, DeviceError> {
        self.join();
        let missing: Vec<&Kernel> =
            kernels.iter().filter(|kernel| find(&self.made, &Key::of(kernel, images)).is_none()).collect();
        let made = make_all(&self.maker, &missing, images);
        let mut own = Vec::with_capacity(missing.len());
        for (kernel, pipeline) in missing.iter().zip(made) {
            let (key, pipeline) = (Key::of(kernel, images), Arc::new(pipeline?));
            keep(&self.maker, &self.made, key.clone(), Arc::clone(&pipeline));
            own.push((key, pipeline));
        }
        kernels
            .iter()
            .map(|kernel| {
                let key = Key::of(kernel, images);
                let own =
                    own.iter().find(|(known, _)| *known == key).map(|(_, pipeline)| Arc::clone(pipeline));
                own.or_else(|| find(&self.made, &key)).ok_or_else(|| DeviceError::Driver {
                    call: "vkCreateComputePipelines",
                    code: "no pipeline".to_owned(),
                })
            })
            .collect()
    }

    /// Compiles kernels on a background thread. Errors are dropped; they recur when the pipeline is
    /// requested.
    pub(crate) fn make_ahead(&self, kernels: Vec<Kernel>, images: Vec<Image>) {
        self.join();
        let (maker, made) = (self.maker.clone(), Arc::clone(&self.made));
        let thread = std::thread::spawn(move || {
            for kernel in &kernels {
                let key = Key::of(kernel, &images);
                if find(&made, &key).is_none()
                    && let Ok(pipeline) = maker.make(kernel, &images)
                {
                    keep(&maker, &made, key, Arc::new(pipeline));
                }
            }
        });
        self.ahead.borrow_mut().push(thread);
    }

    /// Returns the pipelines of a prepared plan; those that are no longer cached are destroyed.
    pub(crate) fn give_back(&self, pipelines: Vec<Arc<Pipeline>>) {
        for pipeline in pipelines {
            if let Some(pipeline) = Arc::into_inner(pipeline) {
                self.maker.destroy(&pipeline);
            }
        }
    }

    /// Empties the cache. Pipelines in use are destroyed when their prepared plan returns them.
    pub(crate) fn forget(&self) {
        self.join();
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, pipeline) in made.drain(..) {
            if let Some(pipeline) = Arc::into_inner(pipeline) {
                self.maker.destroy(&pipeline);
            }
        }
    }

    /// Waits until no compilation ahead is running.
    fn join(&self) {
        for thread in self.ahead.borrow_mut().drain(..) {
            if thread.join().is_err() {
                tracing::error!("making pipelines ahead was cut short");
            }
        }
    }
}

fn find(made: &Made, key: &Key) -> Option<Arc<Pipeline>> {
    let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
    let place = made.iter().position(|(known, _)| known == key)?;
    let found = made.remove(place);
    let pipeline = Arc::clone(&found.1);
    made.push(found);
    Some(pipeline)
}

/// Caches a pipeline, and evicts the least recently used one beyond the capacity.
fn keep(maker: &Maker, made: &Made, key: Key, pipeline: Arc<Pipeline>) {
    let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
    made.push((key, pipeline));
    if made.len() > KEPT {
        let (_, oldest) = made.remove(0);
        // A pipeline in use is destroyed by its last user.
        if let Some(oldest) = Arc::into_inner(oldest) {
            maker.destroy(&oldest);
        }
    }
}

/// Compiles pipelines, one thread each.
fn make_all(maker: &Maker, kernels: &[&Kernel], images: &[Image]) -> Vec<Result<Pipeline, DeviceError>> {
    let [first, others @ ..] = kernels else { return Vec::new() };
    let cut_short =
        || DeviceError::Driver { call: "vkCreateComputePipelines", code: "its thread ended".to_owned() };
    std::thread::scope(|scope| {
        let others: Vec<_> = others.iter().map(|kernel| scope.spawn(|| maker.make(kernel, images))).collect();
        let mut made = vec![maker.make(first, images)];
        made.extend(others.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(cut_short()))));
        made
    })
}
