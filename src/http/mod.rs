//! What is served over HTTP: health, metrics, apps, packages.
