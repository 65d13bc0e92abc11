{{- /* What is added to a pod, in CEL. Lists are merged by name, so what a container has already stays. Of what the API calls atomic (fieldRef, the
lists of capabilities) an apply configuration may hold nothing: the server refuses it as a whole. So that comes afterwards, as a JSON patch. */ -}}

{{- /* A list of one variable, empty where the container sets it itself. */ -}}
{{- define "gpupool.variable" -}}
(has(one.env) && one.env.exists(set, set.name == {{ .name | quote }}) ? []
 : [Object.spec.containers.env{name: {{ .name | quote }}, value: {{ .value | quote }}}])
{{- end -}}

{{- define "gpupool.merged" -}}
Object{
  spec: Object.spec{
    initContainers: [Object.spec.initContainers{
      name: "gpupool-install",
      image: {{ .Values.image | quote }},
      volumeMounts: [Object.spec.initContainers.volumeMounts{name: "gpupool", mountPath: "/target"}],
      resources: Object.spec.initContainers.resources{
        requests: {"cpu": "10m", "memory": "16Mi"},
        limits: {"cpu": "1", "memory": "64Mi"}
      },
      securityContext: Object.spec.initContainers.securityContext{
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        seccompProfile: Object.spec.initContainers.securityContext.seccompProfile{type: "RuntimeDefault"}
      }
    }],
    containers: object.spec.containers.map(one, Object.spec.containers{
      name: one.name,
      env: [
        Object.spec.containers.env{
          name: "LD_PRELOAD",
          value: "/opt/gpupool/lib/libgpupool.so" + (
            has(one.env) && one.env.exists(set, set.name == "LD_PRELOAD" && has(set.value) && set.value != "")
            ? ":" + one.env.filter(set, set.name == "LD_PRELOAD")[0].value : "")
        }
      ]
      + {{ include "gpupool.variable" (dict "name" "GPUPOOL_CONFIG" "value" "/etc/gpupool/gpupool.json") | indent 6 | trim }}
      {{- range $name, $value := .Values.environment }}
      + {{ include "gpupool.variable" (dict "name" $name "value" $value) | indent 6 | trim }}
      {{- end }}
      + (variables.claim == "" ? []
         : {{ include "gpupool.variable" (dict "name" "GPUPOOL_STATS_PATH" "value" "/var/lib/gpupool/$(POOL_NODE_NAME)-$(POOL_POD_NAME)-%r-%p.json") | indent 9 | trim }}
         + {{ include "gpupool.variable" (dict "name" "GPUPOOL_STATS_PAGES" "value" "/var/lib/gpupool") | indent 9 | trim }}),
      volumeMounts: [
        Object.spec.containers.volumeMounts{name: "gpupool", mountPath: "/opt/gpupool", readOnly: true},
        Object.spec.containers.volumeMounts{name: "gpupool-config", mountPath: "/etc/gpupool", readOnly: true}
      ] + (variables.claim == "" ? [] : [
        Object.spec.containers.volumeMounts{name: "gpupool-reports", mountPath: "/var/lib/gpupool"}
      ])
    }),
    volumes: [
      Object.spec.volumes{name: "gpupool", emptyDir: Object.spec.volumes.emptyDir{sizeLimit: "64Mi"}},
      Object.spec.volumes{name: "gpupool-config", configMap: Object.spec.volumes.configMap{name: "gpupool", optional: true}}
    ] + (variables.claim == "" ? [] : [
      Object.spec.volumes{name: "gpupool-reports",
        persistentVolumeClaim: Object.spec.volumes.persistentVolumeClaim{claimName: variables.claim}}
    ])
  }
}
{{- end -}}

{{- /* A variable before all others of each container, so that they can name it. */ -}}
{{- define "gpupool.told" -}}
object.spec.containers.map(one, JSONPatch{
  op: "add",
  path: "/spec/containers/" + string(object.spec.containers.map(each, each.name).indexOf(one.name)) + "/env/0",
  value: Object.spec.containers.env{
    name: {{ .name | quote }},
    valueFrom: Object.spec.containers.env.valueFrom{
      fieldRef: Object.spec.containers.env.valueFrom.fieldRef{fieldPath: {{ .field | quote }}}
    }
  }
})
{{- end -}}

{{- define "gpupool.added" -}}
[JSONPatch{
  op: "add",
  path: "/spec/initContainers/" + string(object.spec.initContainers.map(each, each.name).indexOf("gpupool-install"))
        + "/securityContext/capabilities",
  value: Object.spec.initContainers.securityContext.capabilities{drop: ["ALL"]}
}]
+ (variables.claim == "" ? []
   : {{ include "gpupool.told" (dict "name" "POOL_NODE_NAME" "field" "spec.nodeName") | indent 3 | trim }}
   + {{ include "gpupool.told" (dict "name" "POOL_POD_NAME" "field" "metadata.name") | indent 3 | trim }})
{{- end -}}
