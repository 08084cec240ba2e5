//! Properties of compiled pipelines: statistics, and code from intermediate forms to machine text
//! (`VK_KHR_pipeline_executable_properties`).

use std::ffi::{CStr, c_char, c_void};

use ash::{khr, vk};
use plan::{DeviceError, Image, Kernel};

use crate::error::call_error;
use crate::pipeline::PipelineCompiler;
use crate::stage_flags::stage_flag;

/// The required extension.
pub const EXECUTABLE_EXTENSION: &str = "VK_KHR_pipeline_executable_properties";

/// A separately compiled part of a pipeline; a compute pipeline usually has one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Executable {
    /// The driver's name for it, such as `Compute Shader`.
    pub name: String,
    pub description: String,
    /// The subgroup size that it was compiled for; 0 if unknown.
    pub subgroup_size: u32,
    /// Statistics in the driver's order.
    pub statistics: Vec<Statistic>,
    /// Forms of the code in the driver's order: from the one closest to SPIR-V to machine code.
    pub representations: Vec<Representation>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Statistic {
    /// The driver's name for it.
    pub name: String,
    /// Its value; booleans are 0 or 1.
    pub value: f64,
}

/// A form of the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Representation {
    /// The driver's name for it, such as `NIR Shader(s)` or `Assembly`.
    pub name: String,
    /// The text, with invalid UTF-8 replaced; `None` for a binary form.
    pub text: Option<String>,
}

/// Compiles a kernel and returns the properties of its executables, without those of other stages of its
/// pipeline.
pub(crate) fn compile_executables(
    functions: Option<&khr::pipeline_executable_properties::Device>,
    compiler: &PipelineCompiler,
    kernel: &Kernel,
    images: &[Image],
) -> Result<Vec<Executable>, DeviceError> {
    let functions = functions.ok_or_else(|| DeviceError::Unsupported(EXECUTABLE_EXTENSION.to_owned()))?;
    let capture = vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR
        | vk::PipelineCreateFlags::CAPTURE_INTERNAL_REPRESENTATIONS_KHR;
    let pipeline = compiler.compile_with_flags(kernel, images, capture)?;
    let found = read_executables(functions, pipeline.raw, stage_flag(&kernel.stage));
    compiler.destroy(&pipeline);
    found
}

/// Adds code that the driver prints to standard output to the first executable.
pub(crate) fn add_forms(executables: &mut Vec<Executable>, forms: &[(&str, &str)]) {
    if executables.is_empty() && !forms.is_empty() {
        executables.push(Executable::default());
    }
    let Some(executable) = executables.first_mut() else { return };
    executable.representations.extend(
        forms
            .iter()
            .map(|(name, text)| Representation { name: (*name).to_owned(), text: Some((*text).to_owned()) }),
    );
}

fn read_executables(
    functions: &khr::pipeline_executable_properties::Device,
    pipeline: vk::Pipeline,
    stage: vk::ShaderStageFlags,
) -> Result<Vec<Executable>, DeviceError> {
    let info = vk::PipelineInfoKHR::default().pipeline(pipeline);
    // SAFETY: the pipeline is this device's and alive, and the extension's feature is on.
    let properties = unsafe { functions.get_pipeline_executable_properties(&info) }
        .map_err(call_error("vkGetPipelineExecutablePropertiesKHR"))?;
    let mut found = Vec::with_capacity(properties.len());
    // Executables of several stages, or of unknown stages, are included.
    let of_stage = |properties: &&vk::PipelineExecutablePropertiesKHR<'_>| {
        properties.stages.is_empty() || properties.stages.intersects(stage)
    };
    for (index, properties) in (0..).zip(&properties).filter(|(_, properties)| of_stage(properties)) {
        let info = vk::PipelineExecutableInfoKHR::default().pipeline(pipeline).executable_index(index);
        // SAFETY: as above; the pipeline was created with the flag for statistics, and the index is one of
        // its executables.
        let statistics = unsafe { functions.get_pipeline_executable_statistics(&info) }
            .map_err(call_error("vkGetPipelineExecutableStatisticsKHR"))?;
        found.push(Executable {
            name: driver_string(&properties.name),
            description: driver_string(&properties.description),
            subgroup_size: properties.subgroup_size,
            statistics: statistics.iter().map(convert_statistic).collect(),
            representations: read_representations(functions, &info)?,
        });
    }
    Ok(found)
}

fn convert_statistic(statistic: &vk::PipelineExecutableStatisticKHR<'_>) -> Statistic {
    let value = &statistic.value;
    // SAFETY: the format selects the member of the union that the driver has written, and all members have at
    // most 64 bits.
    let value = unsafe {
        match statistic.format {
            vk::PipelineExecutableStatisticFormatKHR::BOOL32 => f64::from(u8::from(value.b32 != vk::FALSE)),
            vk::PipelineExecutableStatisticFormatKHR::INT64 => value.i64 as f64,
            vk::PipelineExecutableStatisticFormatKHR::UINT64 => value.u64 as f64,
            _ => value.f64,
        }
    };
    Statistic { name: driver_string(&statistic.name), value }
}

fn read_representations(
    functions: &khr::pipeline_executable_properties::Device,
    info: &vk::PipelineExecutableInfoKHR<'_>,
) -> Result<Vec<Representation>, DeviceError> {
    let call = "vkGetPipelineExecutableInternalRepresentationsKHR";
    let function = functions.fp().get_pipeline_executable_internal_representations_khr;
    let mut count = 0;
    // SAFETY: the pipeline of `info` is alive and was created with the flag for representations; without an
    // array the driver only writes the count.
    unsafe { function(functions.device(), info, &raw mut count, std::ptr::null_mut()) }
        .result()
        .map_err(call_error(call))?;
    let mut forms = vec![vk::PipelineExecutableInternalRepresentationKHR::default(); count as usize];
    // SAFETY: as above, with room for `count` structures, whose data pointers are null: the driver writes the sizes.
    unsafe { function(functions.device(), info, &raw mut count, forms.as_mut_ptr()) }
        .result()
        .map_err(call_error(call))?;
    forms.truncate(count as usize);
    let mut data: Vec<Vec<u8>> = forms.iter().map(|form| vec![0; form.data_size]).collect();
    for (form, bytes) in forms.iter_mut().zip(&mut data) {
        form.p_data = bytes.as_mut_ptr().cast::<c_void>();
    }
    // SAFETY: as above, with buffers of the sizes that the driver reported; they outlive the call.
    let answer = unsafe { function(functions.device(), info, &raw mut count, forms.as_mut_ptr()) };
    // A form that grew between the calls is truncated, and INCOMPLETE reports it; the rest is still useful.
    if answer != vk::Result::INCOMPLETE {
        answer.result().map_err(call_error(call))?;
    }
    let texts = forms.iter().zip(data);
    Ok(texts
        .map(|(form, mut bytes)| {
            bytes.truncate(form.data_size);
            while bytes.last() == Some(&0) {
                bytes.pop();
            }
            let is_text = form.is_text == vk::TRUE;
            Representation {
                name: driver_string(&form.name),
                text: is_text.then(|| String::from_utf8_lossy(&bytes).into_owned()),
            }
        })
        .collect())
}

/// Returns a string in a driver's array, even if it is not terminated.
fn driver_string(characters: &[c_char]) -> String {
    // The type of characters is signed or not by architecture.
    let bytes: Vec<u8> = characters.iter().flat_map(|character| character.to_ne_bytes()).collect();
    match CStr::from_bytes_until_nul(&bytes) {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}
