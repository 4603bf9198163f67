package io.github.kproto;

import java.util.LinkedHashMap;
import java.util.Map;

/** A JSON object that is built by a method for each of its members, which returns the object. */
abstract class Members<T extends Members<T>> {
    final Map<String, Object> members = new LinkedHashMap<>();

    @SuppressWarnings("unchecked")
    final T with(String name, Object value) {
        members.put(name, value);
        return (T) this;
    }

    /** As JSON. */
    @Override
    public final String toString() {
        return Json.write(members);
    }
}
