package server

import (
	"maps"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"skald/host/audio"
)

// openAPI is GET /openapi.json: what the server answers to, for programs. The body of a
// song's request comes from the table that requests are judged by, and the replies from
// the types they are written with, so that the document tells what the server does.
func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) {
	m, refusal := s.ready() // the limits are the model's
	if refusal != nil {
		s.writeError(w, refusal)
		return
	}
	rules := s.rules(m)
	version := s.config.Version
	if version == "" {
		version = "unknown"
	}
	doc := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Skald", "version": version,
			"description": "Songs from lyrics and a description, by " + rules.Info.Name + ". The routes under /v1 are a superset of OpenAI's.",
		},
		"paths": paths(rules.Parameters()),
		"components": object{
			"schemas": merge(jobSchemas(rules), object{
				"SongRequest": rules.Schema(),
				"Error":       schemaOf[errorReply](),
				"Prompt":      schemaOf[promptReply](),
				"Model":       schemaOf[modelObject](),
				"Models":      schemaOf[modelList](),
				"Health":      schemaOf[health](),
				"Readiness":   schemaOf[readiness](),
				"AudioDelta":  schemaOf[audioDelta](),
				"AudioDone":   schemaOf[audioDone](),
				"StreamError": schemaOf[failure](),
			}),
			"securitySchemes": object{"key": object{"type": "http", "scheme": "bearer"}},
		},
	}
	if len(*s.keys.Load()) > 0 {
		doc["security"] = []object{{"key": []string{}}}
	}
	writeJSON(w, http.StatusOK, doc)
}

// object is a JSON object.
type object = map[string]any

// paths describes the routes; TestOpenAPIRoutes compares them with the router's.
func paths(fields []any) object {
	get := func(id, summary string, responses object, parameters ...object) object {
		op := object{"operationId": id, "summary": summary, "responses": responses}
		if len(parameters) > 0 {
			op["parameters"] = parameters
		}
		return object{"get": op}
	}
	open := func(path object) object { // needs no key
		path["get"].(object)["security"] = []object{}
		return path
	}
	return merge(jobPaths(), object{
		"/v1/audio/speech": object{"get": object{
			"operationId": "getSong",
			"summary":     "Makes a song, for audio elements.",
			"description": "The fields of a POST in the query. A key is still sent as a header. Pages of other sites are refused unless their origin is allowed.",
			"parameters":  fields,
			"responses":   merge(object{"200": song()}, failures(400, 401, 403, 404, 429, 500, 503)),
		}, "post": object{
			"operationId": "createSong",
			"summary":     "Makes a song.",
			"description": "A client that goes away ends its song. A stream that cannot be finished is broken off, or as events ends with an error.",
			"requestBody": object{"required": true, "content": object{"application/json": object{"schema": ref("SongRequest")}}},
			"responses":   merge(object{"200": song()}, failures(400, 401, 404, 413, 415, 429, 500, 503)),
		}},
		"/v1/music/prompt": object{"post": object{
			"operationId": "checkPrompt",
			"summary":     "Tells what a request for a song would come to, without making it.",
			"requestBody": object{"required": true, "content": object{"application/json": object{"schema": ref("SongRequest")}}},
			"responses":   merge(object{"200": reply200("Prompt")}, failures(400, 401, 404, 413, 415, 503)),
		}},
		"/v1/models": get("listModels", "Lists the model that is served.",
			merge(object{"200": reply200("Models")}, failures(401, 503))),
		"/v1/models/{id}": get("getModel", "Describes the model, by its name or an alias.",
			merge(object{"200": reply200("Model")}, failures(401, 404, 503)),
			object{"name": "id", "in": "path", "required": true, "schema": object{"type": "string"}}),
		"/healthz": open(get("health", "Tells whether the process is worth keeping.",
			object{"200": reply200("Health"), "503": content("Songs make no progress.", "Health")})),
		"/readyz": open(get("readiness", "Tells whether songs are accepted.",
			object{"200": reply200("Readiness"), "503": content("Loading or shutting down.", "Readiness")})),
		"/metrics": get("metrics", "Figures for Prometheus.",
			merge(object{"200": object{"description": "Figures.", "content": object{"text/plain": object{"schema": object{"type": "string"}}}}}, failures(401))),
		"/openapi.json": open(get("openAPI", "This document.",
			merge(object{"200": object{"description": "An OpenAPI document.", "content": object{"application/json": object{"schema": object{"type": "object"}}}}}, failures(503)))),
	})
}

// song describes the reply that is a song.
func song() object {
	forms := object{"text/event-stream": object{"schema": object{"type": "string",
		"description": "Events whose data is an AudioDelta, and at the end an AudioDone or a StreamError."}}}
	for _, c := range audio.Containers() {
		media, _, _ := strings.Cut(c.MediaType(), ";")
		forms[media] = object{} // bytes
	}
	headers := object{}
	for name, about := range headersOfSong {
		headers[name] = object{"description": about, "schema": object{"type": "string"}}
	}
	return object{"description": "The song.", "content": forms, "headers": headers}
}

// failures describes replies that are errors.
func failures(codes ...int) object {
	all := object{}
	for _, code := range codes {
		reply := content(http.StatusText(code), "Error")
		if code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable {
			reply["headers"] = object{"Retry-After": object{"description": "In seconds.", "schema": object{"type": "integer"}}}
		}
		all[strconv.Itoa(code)] = reply
	}
	return all
}

func reply200(schema string) object { return content("OK", schema) }

func content(description, schema string) object {
	return object{"description": description, "content": object{"application/json": object{"schema": ref(schema)}}}
}

func ref(schema string) object { return object{"$ref": "#/components/schemas/" + schema} }

func merge(a, b object) object {
	maps.Copy(a, b)
	return a
}

// schemaOf describes the JSON of a type of ours: of structs with a json tag on every
// field, of what they hold, and of nothing more.
func schemaOf[T any]() object { return schema(reflect.TypeFor[T]()) }

func schema(t reflect.Type) object {
	switch t.Kind() {
	case reflect.Pointer:
		s := schema(t.Elem())
		if kind, ok := s["type"].(string); ok && t.Elem().Kind() != reflect.Struct {
			s["type"] = []string{kind, "null"}
		}
		return s
	case reflect.Slice:
		return object{"type": "array", "items": schema(t.Elem())}
	case reflect.Struct:
		properties, required := object{}, []string{}
		for _, f := range reflect.VisibleFields(t) {
			if !f.IsExported() {
				continue
			}
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			properties[name] = schema(f.Type)
			if options != "omitempty" {
				required = append(required, name)
			}
		}
		return object{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return object{"type": "integer"}
	case reflect.String:
		return object{"type": "string"}
	}
	panic("no schema for " + t.String())
}
