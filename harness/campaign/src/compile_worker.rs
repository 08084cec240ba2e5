//! The worker process that runs a driver's compiler, so that a crash or a hang ends only that process.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use device::{DeviceOptions, Executable, Selector, VulkanDevice};
use plan::{
    BufferId, BufferMemory, Device, DeviceError, Image, ImageAccess, ImageFormat, ImageId, ImageShape,
    KernelStage,
};
use runner::pool::{self, Health};
use runner::worker::{PROGRESS_INTERVAL, ProgressSink, serve_jobs};
use serde::{Deserialize, Serialize};
use shaders::carrier::Carrier;
use shaders::variant::ImageForm;

/// A job: kernels to compile on one device.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CompileJob {
    /// The selector of the device.
    pub device: String,
    /// The kernels in the order of the answers.
    pub kernels: Vec<KernelToCompile>,
    /// Return intermediate representations as well as the machine code.
    pub forms: bool,
    /// Fault injection for the tests of this tool: `crash:OPCODE` or `hang:OPCODE`.
    pub misbehave: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KernelToCompile {
    words: Vec<u32>,
    bindings: u32,
    images: Vec<(u8, bool)>,
    push_constant_bytes: u32,
    addresses: usize,
    subgroups: plan::Subgroups,
    stage: KernelStage,
    /// A shader of a user, with its own interface, in place of all other fields but the words.
    shader: Option<Box<runner::shader::Shader>>,
}

/// The results of a job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CompileAnswer {
    /// The result for each kernel, in the order of the job.
    pub kernels: Vec<Result<CompilationResult, CompileFailure>>,
    /// Why the remaining kernels were not compiled.
    pub failure: Option<CompileFailure>,
}

/// Why a kernel was not compiled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CompileFailure {
    /// The device lacks this feature.
    Lacks(String),
    /// The driver returned this error.
    Driver(String),
}

/// A compiled kernel.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct CompilationResult {
    /// The compile time in microseconds.
    pub micros: u64,
    /// The subgroup size of the code, or 0 if the driver does not report it.
    pub subgroup_size: u32,
    /// Figures by name.
    pub statistics: Vec<(String, f64)>,
    /// Representations by name, the machine code last.
    pub forms: Vec<(String, String)>,
}

impl CompilationResult {
    /// Returns the machine code, which is the last representation.
    pub fn assembly(&self) -> &str {
        self.forms.last().map_or("", |(_, text)| text)
    }
}

impl From<&shaders::CompiledKernel> for KernelToCompile {
    fn from(kernel: &shaders::CompiledKernel) -> KernelToCompile {
        let shape = |shape: ImageForm| match shape {
            ImageForm::TwoDimensional => 2,
            ImageForm::OneDimensional => 1,
            ImageForm::TexelBuffer => 0,
        };
        KernelToCompile {
            words: kernel.words.clone(),
            bindings: u32::try_from(kernel.bindings.len()).unwrap_or(u32::MAX),
            images: kernel.images.iter().map(|image| (shape(image.shape), image.is_float)).collect(),
            push_constant_bytes: kernel.push_constant_bytes(),
            addresses: if kernel.uses_addresses {
                1 + usize::from(!kernel.separate_storages.is_empty())
            } else {
                0
            },
            subgroups: runner::subgroup_requirements(kernel),
            stage: match &kernel.carrier {
                Carrier::Compute => KernelStage::Compute,
                Carrier::Vertex | Carrier::VertexWithFragments { .. } => KernelStage::Vertex,
                Carrier::Fragment { point_shader: positions, .. } => {
                    KernelStage::Fragment { vertex_shader: positions.clone() }
                }
                Carrier::Mesh => KernelStage::Mesh,
                Carrier::Task { mesh } => KernelStage::Task { mesh_shader: mesh.clone() },
            },
            shader: None,
        }
    }
}

impl From<&runner::shader::Shader> for KernelToCompile {
    fn from(shader: &runner::shader::Shader) -> KernelToCompile {
        let words = shader.words.clone();
        KernelToCompile { words, shader: Some(Box::new(shader.clone())), ..KernelToCompile::default() }
    }
}

impl KernelToCompile {
    fn plan_images(&self) -> Vec<Image> {
        if let Some(shader) = &self.shader {
            return shader.plan().images;
        }
        let image = |(shape, float): &(u8, bool)| Image {
            shape: match shape {
                2 => ImageShape::TwoDimensional { width: 4096, height: 1 },
                1 => ImageShape::OneDimensional { width: 4096 },
                _ => ImageShape::Texels(BufferId(0)),
            },
            format: if *float { ImageFormat::FLOAT } else { ImageFormat::UNSIGNED },
            access: ImageAccess::Storage,
            memory: BufferMemory::Device,
            name: "texels",
        };
        self.images.iter().map(image).collect()
    }

    fn plan_kernel(&self) -> plan::Kernel {
        if let Some(shader) = &self.shader {
            return shader.kernel();
        }
        plan::Kernel {
            words: self.words.clone(),
            bindings: self.bindings,
            images: (0..).map(ImageId).take(self.images.len()).collect(),
            push_constant_bytes: self.push_constant_bytes,
            addresses: vec![BufferId(0); self.addresses],
            subgroups: self.subgroups,
            stage: self.stage.clone(),
            interface: None,
        }
    }
}

impl pool::PoolAnswer for CompileAnswer {
    fn health(&self) -> Health {
        if self.failure.is_some() { Health::Unknown } else { Health::Good }
    }

    fn ends_worker(&self) -> bool {
        false
    }

    fn failure(&self) -> Option<String> {
        match self.failure.as_ref()? {
            CompileFailure::Lacks(what) | CompileFailure::Driver(what) => Some(what.clone()),
        }
    }
}

/// Serves compile jobs until standard input ends.
///
/// # Errors
/// If the parent process sends an invalid message or does not read answers.
pub fn serve_compile_jobs() -> io::Result<()> {
    let mut devices: BTreeMap<String, VulkanDevice> = BTreeMap::new();
    let _: ControlFlow<()> =
        serve_jobs(PROGRESS_INTERVAL, &mut |job: &CompileJob, on_progress: ProgressSink<'_, ()>| {
            let mut answer = CompileAnswer::default();
            answer.failure = compile_kernels(&mut answer, job, &mut devices, on_progress).err();
            answer
        })?;
    Ok(())
}

fn compile_kernels(
    answer: &mut CompileAnswer,
    job: &CompileJob,
    devices: &mut BTreeMap<String, VulkanDevice>,
    on_progress: ProgressSink<'_, ()>,
) -> Result<(), CompileFailure> {
    if !devices.contains_key(&job.device) {
        let device = if vendor::parse_selector(&job.device).is_some() {
            open_compile_only(&job.device, DeviceOptions::default())?
        } else {
            let selector: Selector = job
                .device
                .parse()
                .map_err(|error: device::SelectorError| CompileFailure::Driver(error.to_string()))?;
            VulkanDevice::open(&selector, DeviceOptions::default())?
        };
        devices.insert(job.device.clone(), device);
    }
    let Some(device) = devices.get(&job.device) else { return Ok(()) };
    // Reports progress: the device is open.
    let _ = on_progress(&|| ());
    for kernel in &job.kernels {
        inject_fault_if_named(job.misbehave.as_deref(), &kernel.words);
        let started = Instant::now();
        let result = device.executables(&kernel.plan_kernel(), &kernel.plan_images());
        let result = result.map(|executables| compilation_result(executables, started.elapsed(), job.forms));
        answer.kernels.push(result.map_err(CompileFailure::from));
    }
    Ok(())
}

/// Opens the only device of a process that was started for a compile-only device.
///
/// # Errors
/// [`DeviceError::NoSuchDevice`] if the process has another device.
pub fn open_compile_only(selector: &str, options: DeviceOptions) -> Result<VulkanDevice, DeviceError> {
    let device = VulkanDevice::open(&Selector::Best, options)?;
    if device.capabilities().executes || device.identity().name != selector {
        return Err(DeviceError::NoSuchDevice(selector.to_owned()));
    }
    Ok(device)
}

fn compilation_result(
    executables: Vec<Executable>,
    elapsed: Duration,
    wants_representations: bool,
) -> CompilationResult {
    let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    let mut result = CompilationResult { micros, ..CompilationResult::default() };
    for executable in executables {
        result.subgroup_size = result.subgroup_size.max(executable.subgroup_size);
        let figures = executable.statistics.into_iter().map(|figure| (figure.name, figure.value));
        result.statistics.extend(figures);
        let texts = executable.representations.into_iter();
        let mut texts: Vec<(String, String)> =
            texts.filter_map(|form| Some((form.name, form.text?))).collect();
        if !wants_representations {
            texts = texts.pop().into_iter().collect();
        }
        result.forms.extend(texts);
    }
    result
}

impl From<DeviceError> for CompileFailure {
    fn from(error: DeviceError) -> CompileFailure {
        match error {
            DeviceError::Unsupported(what) => CompileFailure::Lacks(what),
            other => CompileFailure::Driver(other.to_string()),
        }
    }
}

/// Crashes or hangs if the module contains the instruction that fault injection names.
fn inject_fault_if_named(injected_fault: Option<&str>, words: &[u32]) {
    let Some((how, opcode)) = injected_fault.and_then(|text| text.split_once(':')) else { return };
    let text = shaders::disassemble(words).unwrap_or_default();
    if !text.split_whitespace().any(|word| word == opcode) {
        return;
    }
    match how {
        "crash" => std::process::abort(),
        "hang" => loop {
            std::thread::sleep(Duration::from_secs(3600));
        },
        _ => {}
    }
}
