//! Compares the contents of a walk with those that a Vulkan device leaves.
//!
//! Drivers may crash or hang, so the dispatch runs in a worker process of the program `vk-litmus`.

use std::path::PathBuf;

use campaign::shader::device_contents::ContentsDevice;
use campaign::workers::set_program;
use entry_point::AnalysisOptions;
use walk::GridReport;

use super::{BoundMemory, LoadedDispatch, Memory, ShaderTestError, input_error};
use crate::library::error::Error;

/// A device on which a test runs as well: [`ShaderTest::on`](super::ShaderTest::on).
///
/// ```no_run
/// use vk_litmus::{ShaderTest, TestDevice};
///
/// let mut data = [1.0_f32; 64];
/// let device = TestDevice::named("AMD").program("target/release/vk-litmus").float_tolerance(2);
/// for device in [TestDevice::lavapipe(), TestDevice::swiftshader(), device] {
///     ShaderTest::spirv("scale", std::fs::read("scale.spv")?).bind(0, 0, &mut data).on(device).run()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct TestDevice {
    selector: String,
    program: Option<PathBuf>,
    ulps: u32,
}

impl TestDevice {
    /// Creates a device by its name, as `--device` takes it.
    pub fn named(selector: &str) -> TestDevice {
        TestDevice { selector: selector.to_owned(), program: None, ulps: 0 }
    }

    /// Creates Mesa's processor driver.
    pub fn lavapipe() -> TestDevice {
        TestDevice::named("lavapipe")
    }

    /// Creates Google's processor driver.
    pub fn swiftshader() -> TestDevice {
        TestDevice::named("swiftshader")
    }

    /// Sets the program that calls the driver [default: `$VK_LITMUS`, else `vk-litmus`]. All tests of a process share
    /// the first one.
    #[must_use]
    pub fn program(mut self, path: impl Into<PathBuf>) -> TestDevice {
        self.program = Some(path.into());
        self
    }

    /// Sets the units in the last place by which elements of `f32` slices may differ [default: 0].
    #[must_use]
    pub fn float_tolerance(mut self, ulps: u32) -> TestDevice {
        self.ulps = ulps;
        self
    }

    pub(super) fn select(self) -> Result<SelectedDevice, Error> {
        let named =
            || std::env::var_os("VK_LITMUS").map_or_else(|| PathBuf::from("vk-litmus"), PathBuf::from);
        set_program(self.program.clone().unwrap_or_else(named));
        let device = ContentsDevice::select(&self.selector);
        let device = device.map_err(|failure| Error::for_file(&self.selector, failure))?;
        Ok(SelectedDevice { device, test: self })
    }
}

/// A device of a test that exists.
pub(super) struct SelectedDevice {
    device: ContentsDevice,
    test: TestDevice,
}

impl SelectedDevice {
    /// Sets the subgroup size to that of the device if a dispatch depends on it.
    pub(super) fn fit(
        &self,
        dispatch: &LoadedDispatch,
        options: &mut AnalysisOptions,
    ) -> Result<(), ShaderTestError> {
        let fitted = self.device.fit_subgroup_size(&dispatch.module, options);
        Ok(fitted.map_err(|failure| Error::for_file(&dispatch.file, failure))?)
    }

    pub(super) fn compare(
        &self,
        dispatch: &LoadedDispatch,
        options: &AnalysisOptions,
        report: &GridReport,
        memory: &Memory,
    ) -> Result<(), ShaderTestError> {
        let plan = analysis::dispatch::plan_dispatch(&dispatch.module, options);
        let plan = plan.map_err(|refusal| input_error(&dispatch.file, &refusal))?;
        let on_device = self.device.dispatch(plan);
        let on_device = on_device.map_err(|failure| Error::for_file(&dispatch.file, failure))?;
        for buffer in on_device {
            let [set, binding, element] = buffer.at;
            let mut finals = report.final_buffers.iter();
            let Some(walked) = finals.find(|walked| walked.at == (set, binding, element)) else { continue };
            let bound = memory.iter().find(|(at, _)| dispatch.descriptor_of(**at) == Some((set, binding)));
            let (unit, ty) = bound.map_or((4, ""), |(_, bound)| bound.compared_unit());
            let known = walked.first_unknown_byte.unwrap_or(walked.bytes.len()) / unit;
            let pairs = walked.bytes.chunks(unit).zip(buffer.bytes.chunks(unit)).take(known);
            let mut differing =
                pairs.enumerate().filter(|(_, (walk, device))| !self.test.is_equal(ty, walk, device));
            if let Some((index, (walk, device))) = differing.next() {
                let [walk, device] = [walk, device].map(|bytes| format_element(ty, bytes));
                let selector = self.test.selector.clone();
                return Err(ShaderTestError::DeviceDiffers { selector, set, binding, index, walk, device });
            }
        }
        Ok(())
    }
}

impl TestDevice {
    fn is_equal(&self, ty: &str, walk: &[u8], device: &[u8]) -> bool {
        // In this order, adjacent floats have adjacent numbers.
        let rank = |bits: u32| if bits >> 31 == 0 { i64::from(bits) } else { -i64::from(bits & 0x7fff_ffff) };
        walk == device
            || ty == "f32" && {
                let [walk, device] = [walk, device].map(|bytes| little_endian(bytes) as u32);
                let are_nan = [walk, device].into_iter().all(|bits| f32::from_bits(bits).is_nan());
                are_nan || rank(walk).abs_diff(rank(device)) <= self.ulps.into()
            }
    }
}

impl BoundMemory {
    /// Returns the bytes that are compared at a time, and the type of the slice if it is one number.
    fn compared_unit(&self) -> (usize, &'static str) {
        match self.element_bytes {
            1 | 2 | 4 | 8 => (self.element_bytes, self.element_type),
            _ => (4, ""),
        }
    }
}

pub(super) fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

pub(super) fn format_element(ty: &str, bytes: &[u8]) -> String {
    let bits = little_endian(bytes);
    match ty {
        "f32" => f32::from_bits(bits as u32).to_string(),
        "f64" => f64::from_bits(bits).to_string(),
        "i8" | "i16" | "i32" | "i64" => {
            let shift = 64 - 8 * bytes.len();
            ((bits << shift) as i64 >> shift).to_string()
        }
        _ => bits.to_string(),
    }
}
