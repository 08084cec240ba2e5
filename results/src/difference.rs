//! The first field in which two plans differ, for the message of a run that cannot be resumed.

use std::fmt;

use crate::escape;
use crate::wire::{DeviceRecord, PlanRecord};

/// A field that differs between two plans, with both values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanDifference {
    /// The field in plain words.
    pub field: String,
    /// Its value in the recorded plan.
    pub recorded: String,
    /// Its value in the new plan.
    pub requested: String,
}

impl fmt::Display for PlanDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PlanDifference { field, recorded, requested } = self;
        let (recorded, requested) = (escape::escape_line(recorded), escape::escape_line(requested));
        write!(f, "{} is `{recorded}` there and `{requested}` here", escape::escape_line(field))
    }
}

/// Returns the first difference, from the settings that a command line sets to hashes; `None` if all fields are
/// equal.
pub fn first_difference(recorded: &PlanRecord, requested: &PlanRecord) -> Option<PlanDifference> {
    let both = |property: &dyn Fn(&PlanRecord) -> String| (property(recorded), property(requested));
    let shard = |plan: &PlanRecord| plan.shard.clone().unwrap_or_else(|| "1/1".to_owned());
    let devices = |plan: &PlanRecord| join_names(plan.devices.iter().map(|device| device.name.as_str()));
    let count = |plan: &PlanRecord| plan.tests.len().to_string();
    let fields: [(&str, (String, String)); 6] = [
        ("the version of vk-litmus", both(&|plan| plan.tool.clone())),
        ("the device", both(&devices)),
        ("the time or number of instances", both(&|plan| plan.budget.clone())),
        ("the stress", both(&|plan| plan.stress.clone())),
        ("the shard", both(&shard)),
        ("the number of tests", both(&count)),
    ];
    let differs = |(field, (recorded, requested)): (&str, (String, String))| {
        (recorded != requested).then(|| PlanDifference { field: field.to_owned(), recorded, requested })
    };
    fields
        .into_iter()
        .find_map(differs)
        .or_else(|| tests_difference(recorded, requested))
        .or_else(|| devices_difference(recorded, requested))
}

/// Returns the first difference between two lists of tests of equal length.
fn tests_difference(recorded: &PlanRecord, requested: &PlanRecord) -> Option<PlanDifference> {
    let models = |plan: &PlanRecord, test: usize| {
        let models = plan.tests.get(test).map(|test| &test.models);
        join_names(models.into_iter().flatten().map(|model| model.name.as_str()))
    };
    recorded.tests.iter().zip(&requested.tests).enumerate().find_map(|(index, (old, new))| {
        let id = &old.id;
        let (old_models, new_models) = (models(recorded, index), models(requested, index));
        let fields = [
            (format!("test {} of the list", index + 1), &old.id, &new.id),
            (format!("the model of {id}"), &old_models, &new_models),
            (format!("the text of {id} (its hash)"), &old.hash, &new.hash),
        ];
        let texts = fields.into_iter().find(|(_, old, new)| old != new);
        let texts = texts.map(|(field, old, new)| (field, old.clone(), new.clone()));
        let hashes = old.models.iter().zip(&new.models).find(|(old, new)| old != new);
        let hashes = hashes.map(|(old, new)| {
            (format!("the text of the model {} (its hash)", old.name), old.hash.clone(), new.hash.clone())
        });
        let (field, recorded, requested) = texts.or(hashes)?;
        Some(PlanDifference { field, recorded, requested })
    })
}

/// Returns the first property of a device that differs between two plans with the same devices.
fn devices_difference(recorded: &PlanRecord, requested: &PlanRecord) -> Option<PlanDifference> {
    let properties = |device: &DeviceRecord| match serde_json::to_value(device) {
        Ok(serde_json::Value::Object(properties)) => properties,
        _ => serde_json::Map::new(),
    };
    recorded.devices.iter().zip(&requested.devices).find_map(|(old, new)| {
        let (old_properties, new_properties) = (properties(old), properties(new));
        let names = old_properties.keys().chain(new_properties.keys());
        let name = names.into_iter().find(|name| old_properties.get(*name) != new_properties.get(*name))?;
        let value = |properties: &serde_json::Map<String, serde_json::Value>| match properties.get(name) {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => String::new(),
        };
        Some(PlanDifference {
            field: format!("`{name}` of {}", old.name),
            recorded: value(&old_properties),
            requested: value(&new_properties),
        })
    })
}

fn join_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(",")
}
