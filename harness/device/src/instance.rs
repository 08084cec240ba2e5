//! The Vulkan loader and an instance, optionally with validation layers.

use std::cell::Cell;
use std::ffi::{CStr, c_void};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ash::{Entry, ext, khr, vk};
use plan::DeviceError;

use crate::error::{HOW_TO_GET_A_DRIVER, call_error};

const VALIDATION_LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// Validation messages; layers report them from any thread.
type MessageLog = Mutex<Vec<String>>;

/// A Vulkan instance, destroyed when dropped unless it is abandoned.
pub(crate) struct Instance {
    pub(crate) entry: Entry,
    pub(crate) raw: ash::Instance,
    validation: Option<Validation>,
    abandoned: Cell<bool>,
}

struct Validation {
    functions: ext::debug_utils::Instance,
    messenger: vk::DebugUtilsMessengerEXT,
    messages: Arc<MessageLog>,
}

/// Returns the loader's library, which is loaded once and never unloaded: driver threads may still execute
/// its code.
fn load_loader() -> Result<Entry, DeviceError> {
    static LOADER: OnceLock<Entry> = OnceLock::new();
    if let Some(entry) = LOADER.get() {
        return Ok(entry.clone());
    }
    // SAFETY: the library is the system's Vulkan loader, whose initialization has no preconditions.
    let entry = unsafe { Entry::load() }
        .map_err(|error| DeviceError::NoLoader(format!("{error}; {HOW_TO_GET_A_DRIVER}")))?;
    Ok(LOADER.get_or_init(|| entry).clone())
}

/// Returns true if instances support an extension.
fn has_extension(entry: &Entry, extension: &CStr) -> Result<bool, DeviceError> {
    // SAFETY: a global function; no layer is named.
    let known = unsafe { entry.enumerate_instance_extension_properties(None) }
        .map_err(call_error("vkEnumerateInstanceExtensionProperties"))?;
    Ok(known.iter().any(|known| known.extension_name_as_c_str() == Ok(extension)))
}

impl Instance {
    pub(crate) fn new(validation: bool) -> Result<Instance, DeviceError> {
        let entry = load_loader()?;
        // SAFETY: a global function without preconditions.
        let version = unsafe { entry.try_enumerate_instance_version() };
        let version =
            version.map_err(call_error("vkEnumerateInstanceVersion"))?.unwrap_or(vk::API_VERSION_1_0);
        if version < vk::API_VERSION_1_1 {
            return Err(DeviceError::NoDriver("the Vulkan loader is older than Vulkan 1.1".to_owned()));
        }
        let application = vk::ApplicationInfo::default()
            .application_name(c"vk-litmus")
            .engine_name(c"vk-litmus")
            .api_version(vk::API_VERSION_1_3);
        let mut layers = Vec::new();
        let mut extensions = Vec::new();
        if validation {
            check_validation_layer(&entry)?;
            layers.push(VALIDATION_LAYER.as_ptr());
            extensions.push(ext::debug_utils::NAME.as_ptr());
            extensions.push(ext::validation_features::NAME.as_ptr());
        }
        // Without it, loaders hide devices that implement only the portability subset.
        let portable = has_extension(&entry, khr::portability_enumeration::NAME)?;
        let mut flags = vk::InstanceCreateFlags::empty();
        if portable {
            extensions.push(khr::portability_enumeration::NAME.as_ptr());
            flags |= vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR;
        }
        let messages = Arc::new(MessageLog::default());
        let mut messenger_info = messenger_info(&messages);
        let enabled = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
        let mut features = vk::ValidationFeaturesEXT::default().enabled_validation_features(&enabled);
        let mut info = vk::InstanceCreateInfo::default()
            .flags(flags)
            .application_info(&application)
            .enabled_layer_names(&layers)
            .enabled_extension_names(&extensions);
        if validation {
            info = info.push_next(&mut features).push_next(&mut messenger_info);
        }
        // SAFETY: everything that `info` points to lives until after the call; the messages outlive the instance, as
        // they are dropped after it or leaked with it.
        let raw = unsafe { entry.create_instance(&info, None) }.map_err(|result| match result {
            vk::Result::ERROR_INCOMPATIBLE_DRIVER => {
                DeviceError::NoDriver(format!("the loader finds none; {HOW_TO_GET_A_DRIVER}"))
            }
            other => call_error("vkCreateInstance")(other),
        })?;
        let mut instance = Instance { entry, raw, validation: None, abandoned: Cell::new(false) };
        if validation {
            let functions = ext::debug_utils::Instance::new(&instance.entry, &instance.raw);
            // SAFETY: the extension is enabled, and the messages outlive the messenger as above.
            let messenger =
                unsafe { functions.create_debug_utils_messenger(&self::messenger_info(&messages), None) }
                    .map_err(call_error("vkCreateDebugUtilsMessengerEXT"))?;
            instance.validation = Some(Validation { functions, messenger, messages });
        }
        Ok(instance)
    }

    /// Returns the physical devices in the loader's order; at least one.
    pub(crate) fn physical_devices(&self) -> Result<Vec<vk::PhysicalDevice>, DeviceError> {
        // SAFETY: the instance lives.
        let devices = unsafe { self.raw.enumerate_physical_devices() };
        let devices = devices.map_err(call_error("vkEnumeratePhysicalDevices"))?;
        if devices.is_empty() {
            return Err(DeviceError::NoDriver(format!("the drivers have no device; {HOW_TO_GET_A_DRIVER}")));
        }
        Ok(devices)
    }

    /// Returns validation messages since the last call.
    pub(crate) fn take_messages(&self) -> Vec<String> {
        match &self.validation {
            Some(validation) => {
                std::mem::take(&mut *validation.messages.lock().unwrap_or_else(PoisonError::into_inner))
            }
            None => Vec::new(),
        }
    }

    /// Leaves the instance alive until the process ends, because a submission is still running.
    pub(crate) fn abandon(&self) {
        self.abandoned.set(true);
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        if self.abandoned.get() {
            // The layers may still call back, so the messages must stay alive.
            std::mem::forget(self.validation.take());
            return;
        }
        // SAFETY: every child object is destroyed already, since devices own their instance.
        unsafe {
            if let Some(validation) = &self.validation {
                validation.functions.destroy_debug_utils_messenger(validation.messenger, None);
            }
            self.raw.destroy_instance(None);
        }
    }
}

fn check_validation_layer(entry: &Entry) -> Result<(), DeviceError> {
    // SAFETY: a global function without preconditions.
    let layers = unsafe { entry.enumerate_instance_layer_properties() };
    let layers = layers.map_err(call_error("vkEnumerateInstanceLayerProperties"))?;
    if layers.iter().any(|layer| layer.layer_name_as_c_str() == Ok(VALIDATION_LAYER)) {
        return Ok(());
    }
    Err(DeviceError::Unsupported(
        "VK_LAYER_KHRONOS_validation: install the validation layers (Debian: vulkan-validationlayers)"
            .to_owned(),
    ))
}

/// Selects validation messages only: the loader's general messages are about other drivers.
fn messenger_info(messages: &Arc<MessageLog>) -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
    vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(
            vk::DebugUtilsMessageSeverityFlagsEXT::ERROR | vk::DebugUtilsMessageSeverityFlagsEXT::WARNING,
        )
        .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
        .pfn_user_callback(Some(collect_message))
        .user_data(Arc::as_ptr(messages).cast_mut().cast())
}

unsafe extern "system" fn collect_message(
    _severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _types: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    messages: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: `messages` is the pointer given with the callback, which outlives the messenger; the layer passes valid
    // data for the time of the call.
    let (messages, data) = unsafe { (messages.cast_const().cast::<MessageLog>().as_ref(), data.as_ref()) };
    if let (Some(messages), Some(data)) = (messages, data) {
        // SAFETY: the specification requires a null-terminated string here.
        let text = unsafe { data.message_as_c_str() };
        let text = text.map_or_else(String::new, |text| text.to_string_lossy().into_owned());
        messages.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }
    vk::FALSE
}
