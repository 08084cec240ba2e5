//! The list of devices, in processes with different drivers.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::Write;
use std::process::Command;

use device::{DeviceOptions, DriverEnvironment, Selector, SoftwareDriver, VulkanDevice};
use plan::{Device, DeviceError};

/// Set in the child process that runs the test.
const CHILD: &str = "VK_LITMUS_TEST_CHILD";

/// Runs one test of this file in a child process with another environment.
fn run_in_child(test: &str, set: impl FnOnce(&mut Command)) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([format!("listing::{test}").as_str(), "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1");
    set(&mut command);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
}

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

#[test]
fn both_software_drivers_from_one_process() {
    if is_child() {
        let devices = device::list_devices().unwrap();
        let names: Vec<&str> = devices.iter().map(|device| device.identity.name.as_str()).collect();
        assert_eq!(names, ["lavapipe", "swiftshader"]);
        assert!(devices.iter().enumerate().all(|(index, device)| device.index == index));
        let open = |text: &str| VulkanDevice::open(&text.parse().unwrap(), DeviceOptions::default());
        // Both at the same time, by name, index, UUID and substring of the name.
        let opened = [
            open("swiftshader"),
            open("lavapipe"),
            open("1"),
            open(&devices[1].identity.uuid),
            open("llvmpipe"),
        ]
        .map(|device| device.unwrap().identity().name.clone());
        assert_eq!(opened, ["swiftshader", "lavapipe", "swiftshader", "swiftshader", "lavapipe"]);
        assert!(matches!(open("no such device"), Err(DeviceError::NoSuchDevice(_))));
        // The environment is already set, so the process is not restarted.
        assert!(DriverEnvironment::discover().unwrap().is_applied());
        return;
    }
    let environment = DriverEnvironment::discover().unwrap();
    if [SoftwareDriver::Lavapipe, SoftwareDriver::Swiftshader]
        .iter()
        .all(|driver| environment.has_driver(*driver))
    {
        let both = [SoftwareDriver::Swiftshader, SoftwareDriver::Lavapipe].map(Selector::Software);
        run_in_child("both_software_drivers_from_one_process", |command| {
            command.envs(environment.restrict_to(&both).loader_variables());
        });
    } else {
        let mut stderr = std::io::stderr();
        writeln!(stderr, "\nskipped: both_software_drivers_from_one_process: a driver is not installed")
            .unwrap();
    }
}

#[test]
fn without_a_driver_the_error_names_packages() {
    if is_child() {
        let open = VulkanDevice::open(&Selector::Best, DeviceOptions::default()).map(|_| ());
        for result in [device::list_devices().map(|_| ()), open] {
            match result {
                // There is a loader but no driver, or no loader.
                Err(DeviceError::NoDriver(why) | DeviceError::NoLoader(why)) => {
                    assert!(why.contains("libvulkan1"), "{why}")
                }
                other => panic!("{other:?}"),
            }
        }
        return;
    }
    run_in_child("without_a_driver_the_error_names_packages", |command| {
        command.env("VK_DRIVER_FILES", "/nonexistent.json").env("VK_ICD_FILENAMES", "/nonexistent.json");
    });
}
