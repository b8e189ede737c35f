//! `[shortcut]`.

use std::path::PathBuf;

use hopyard_switch::apply::{ShortcutSpec, Value};

use super::{Found, Source, value};

const KEYS: [&str; 2] = ["cgroup", "accept"];

pub(super) fn read(source: &Source<'_>, found: Found<'_, '_>) -> Result<ShortcutSpec, String> {
    let table = found.1.get_ref().as_table();
    let table = table.ok_or_else(|| source.wrong(found, "write it as [shortcut]"))?;
    let mut cgroup = None;
    let mut accept = Vec::new();
    for (key, value) in table {
        let found = (&**key.get_ref(), value);
        match found.0 {
            "cgroup" => {
                let path = PathBuf::from(source.text(found)?);
                if !path.is_absolute() {
                    return Err(source.wrong(found, "takes a path from the root"));
                }
                cgroup = Some(path);
            }
            "accept" => accept = names(source, found)?,
            other => return Err(source.unknown(&key.span(), other, &KEYS)),
        }
    }
    let cgroup = cgroup.ok_or_else(|| source.wrong(found, "it takes a cgroup"))?;
    Ok(ShortcutSpec { cgroup, accept })
}

fn names<T>(source: &Source<'_>, found: Found<'_, '_>) -> Result<Vec<T>, String>
where
    T: std::str::FromStr,
    T::Err: std::fmt::Display,
{
    let Some(Value::List(names)) = value(found.1.get_ref()) else {
        return Err(source.wrong(found, "takes a list of texts in quotes"));
    };
    let read = |name: &String| name.parse().map_err(|why| source.wrong(found, why));
    names.iter().map(read).collect()
}
