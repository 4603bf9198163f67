// Package generated is where the test generates a client; this file keeps its requirement.
package generated

import _ "github.com/oapi-codegen/runtime"
