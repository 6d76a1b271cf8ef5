/* Placeholder: the tracer. */
