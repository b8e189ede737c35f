//! Values that are checked where they are typed.

pub(super) fn base(text: &str) -> Result<String, String> {
    crate::plan::base(text).map_err(|e| e.to_string())
}

/// `AXIS=v1,v2`.
pub(super) fn axis_values(text: &str) -> Result<(String, Vec<String>), String> {
    let (axis, values) = text
        .split_once('=')
        .ok_or_else(|| format!("`{text}` is not of the form AXIS=VALUE"))?;
    let axis = crate::model::axis(axis.trim()).map_err(|e| e.to_string())?;
    let values: Vec<String> = values.split(',').map(|v| v.trim().to_owned()).collect();
    for value in &values {
        if value.contains('=') {
            return Err(format!("another axis takes another --set: --set {value}"));
        }
        (axis.set)(&mut crate::model::Axes::default(), value).map_err(|e| e.to_string())?;
    }
    Ok((axis.name.to_owned(), values))
}

/// `on` or `off`.
pub(super) fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("`{text}` is neither on nor off")),
    }
}
